// Words in any order, which the catalog's names put in theirs.
#include "kernels/gemm/forced_gemm.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/gemm/catalog.h"

namespace tilewave {
namespace {

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('/', begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

// "k4": 4; 0 where it is no such word.
int parse_parts(std::string_view word) {
  if (!word.starts_with('k')) return 0;
  int parts = 0;
  const char* const end = word.data() + word.size();
  const auto read = std::from_chars(word.data() + 1, end, parts);
  return read.ec == std::errc() && read.ptr == end ? std::max(parts, 0) : 0;
}

}  // namespace

ForcedGemm parse_forced_gemm(std::string_view text) {
  ForcedGemm forced = {.kernel = {}, .tile = {}};
  std::string_view slash;
  for (const std::string_view word : words_of(text)) {
    const std::optional<Tile> tile = parse_tile(word);
    const int parts = parse_parts(word);
    if (tile && !forced.tile) {
      forced.tile = tile;
    } else if (parts > 0 && forced.split == 0) {
      forced.split = parts;
    } else {
      forced.kernel += std::string(std::exchange(slash, "/")) + std::string(word);
    }
  }
  forced.kernel = present_name(forced.kernel);
  for (const std::string& name : gemm_kernel_names()) {
    if (std::ranges::is_permutation(words_of(name), words_of(forced.kernel))) forced.kernel = name;
  }
  return forced;
}

std::optional<Tile> parse_tile(std::string_view text) {
  constexpr std::int64_t kMax = std::int64_t{1} << 31;
  Tile tile;
  const char* const end = text.data() + text.size();
  const auto m = std::from_chars(text.data(), end, tile.m);
  if (m.ec != std::errc() || m.ptr == end || *m.ptr != 'x') return std::nullopt;
  const auto n = std::from_chars(m.ptr + 1, end, tile.n);
  if (n.ec != std::errc() || n.ptr != end || tile.m < 1 || tile.n < 1 || tile.m > kMax || tile.n > kMax) return std::nullopt;
  return tile;
}

}  // namespace tilewave
