#include "framework/data/text_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

#include "kernels/error.h"

namespace tilewave {

std::string read_text(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  TW_CHECK_INPUT(std::filesystem::exists(status), path, " does not exist; check the path, which is taken from the current folder.");
  TW_CHECK_INPUT(!std::filesystem::is_directory(status), path, " is a folder; name a text file in it.");
  TW_CHECK_INPUT(std::filesystem::is_regular_file(status), path, " is not a regular file; copy its content to one.");
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  TW_CHECK_INPUT(!error, path, " has no size: ", error.message(), ".");
  TW_CHECK_INPUT(size > 0, path, " is empty; text is needed to train on.");

  errno = 0;
  std::ifstream file(path, std::ios::binary);
  TW_CHECK_INPUT(file, path, " cannot be opened: ", std::strerror(errno), ".");
  std::string text(size, '\0');
  file.read(text.data(), static_cast<std::streamsize>(size));
  TW_CHECK_INPUT(file, path, " cannot be read to its end: ", file.gcount(), " of ", size, " bytes came.");
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
  TW_CHECK_INPUT(!text.empty(), path, " holds nothing but a byte order mark; text is needed to train on.");
  return text;
}

void end_lines_with_lf(std::string& text) {
  std::size_t kept = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '\r' || at + 1 == text.size() || text[at + 1] != '\n') text[kept++] = text[at];
  }
  text.resize(kept);
}

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r') && end != std::string_view::npos) line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

std::string_view whole_characters(std::string_view text, std::size_t limit) {
  std::size_t length = std::min(limit, text.size());
  for (int back = 0; back < 3 && length > 1 && length < text.size(); ++back) {
    if ((static_cast<unsigned char>(text[length]) & 0xC0u) != 0x80u) break;
    --length;
  }
  return text.substr(0, length);
}

std::string_view finished_characters(std::string_view text) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size()); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xC0u) == 0x80u) continue;  // it continues a character
    const std::size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
    return text.substr(0, back < length ? text.size() - back : text.size());
  }
  return text;
}

std::string_view first_part(std::string_view text, std::size_t limit, char separator) {
  if (text.size() <= limit) return text;
  const std::size_t at = text.rfind(separator, limit - 1);
  return at != std::string_view::npos ? text.substr(0, at + 1) : whole_characters(text, limit);
}

std::optional<std::size_t> find_invalid_utf8(std::string_view text) {
  const auto byte = [&](std::size_t at) { return at < text.size() ? static_cast<unsigned char>(text[at]) : 0u; };
  const auto continues = [&](std::size_t at) { return (byte(at) & 0xC0u) == 0x80u; };
  for (std::size_t at = 0; at < text.size();) {
    const unsigned lead = byte(at), second = byte(at + 1);
    std::size_t length = 0;
    if (lead < 0x80) {
      length = 1;
    } else if (lead >= 0xC2 && lead <= 0xDF) {
      length = 2;
    } else if (lead >= 0xE0 && lead <= 0xEF) {
      const bool overlong = lead == 0xE0 && second < 0xA0, surrogate = lead == 0xED && second > 0x9F;
      length = overlong || surrogate ? 0 : 3;
    } else if (lead >= 0xF0 && lead <= 0xF4) {
      const bool overlong = lead == 0xF0 && second < 0x90, beyond = lead == 0xF4 && second > 0x8F;
      length = overlong || beyond ? 0 : 4;
    }
    if (length == 0) return at;
    for (std::size_t i = 1; i < length; ++i) {
      if (!continues(at + i)) return at;
    }
    at += length;
  }
  return std::nullopt;
}

void check_utf8(std::string_view text, const std::filesystem::path& path) {
  if (const std::optional<std::size_t> at = find_invalid_utf8(text)) {
    const std::string_view before = text.substr(0, *at);
    const std::size_t newline = before.rfind('\n');
    throw InputError(sentence(path, ", line ", 1 + std::count(before.begin(), before.end(), '\n'), ", byte ",
                              newline == std::string_view::npos ? *at + 1 : *at - newline,
                              R"(: not UTF-8, which data.tokenizer = "bpe" needs; convert the file, or use data.tokenizer = "bytes".)"));
  }
}

}  // namespace tilewave
