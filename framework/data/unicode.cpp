#include "framework/data/unicode.h"

#include <algorithm>
#include <array>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "framework/data/unicode_tables.h"
#include "framework/io/utf8.h"

namespace tilewave {
namespace {

constexpr std::array<std::string_view, 30> kCategoryNames = {"Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl",
                                                             "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm", "Sc",
                                                             "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co", "Cn"};

// Hangul syllables are composed by rule (the Unicode Standard, section 3.12).
constexpr char32_t kSyllables = 0xAC00, kLeads = 0x1100, kVowels = 0x1161, kTrails = 0x11A7;
constexpr char32_t kLeadCount = 19, kVowelCount = 21, kTrailCount = 28;
constexpr char32_t kSyllableCount = kLeadCount * kVowelCount * kTrailCount;

std::uint64_t pair_key(char32_t first, char32_t second) { return std::uint64_t{first} << 32 | second; }

template <class Run, class Value>
void fill_runs(std::span<const Run> runs, Value Run::*value, std::vector<Value>& out) {
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::size_t end = i + 1 < runs.size() ? runs[i + 1].first : out.size();
    std::fill(out.begin() + runs[i].first, out.begin() + static_cast<std::ptrdiff_t>(end), runs[i].*value);
  }
}

// The tables, spread out for a look-up by one index.
struct UnicodeTables {
  std::vector<GeneralCategory> categories;
  std::vector<std::uint8_t> combining;
  std::unordered_map<char32_t, std::pair<char32_t, char32_t>> apart;
  std::unordered_map<std::uint64_t, char32_t> together;

  UnicodeTables() : categories(kLastCodePoint + 1), combining(kLastCodePoint + 1) {
    fill_runs(category_runs(), &CategoryRun::category, categories);
    fill_runs(combining_runs(), &ClassRun::combining_class, combining);
    for (const Decomposition& entry : decompositions()) {
      apart[entry.composed] = {entry.first, entry.second};
      if (entry.composes) together[pair_key(entry.first, entry.second)] = entry.composed;
    }
  }
};

const UnicodeTables& unicode_tables() {
  static const UnicodeTables made;
  return made;
}

void add_decomposed(char32_t code, std::vector<char32_t>& out) {
  if (code >= kSyllables && code < kSyllables + kSyllableCount) {
    const char32_t index = code - kSyllables, trail = index % kTrailCount;
    out.push_back(kLeads + index / (kVowelCount * kTrailCount));
    out.push_back(kVowels + index % (kVowelCount * kTrailCount) / kTrailCount);
    if (trail > 0) out.push_back(kTrails + trail);
    return;
  }
  const auto found = unicode_tables().apart.find(code);
  if (found == unicode_tables().apart.end()) {
    out.push_back(code);
    return;
  }
  add_decomposed(found->second.first, out);
  if (found->second.second != 0) add_decomposed(found->second.second, out);
}

// Marks in a row stand in the order of their classes.
void order_marks(std::vector<char32_t>& codes) {
  const auto& combining = unicode_tables().combining;
  for (auto at = codes.begin(); at != codes.end();) {
    const auto end = std::find_if(at, codes.end(), [&](char32_t code) { return combining[code] == 0; });
    std::stable_sort(at, end, [&](char32_t a, char32_t b) { return combining[a] < combining[b]; });
    at = end == codes.end() ? end : end + 1;
  }
}

// 0 where the two do not compose.
char32_t composed(char32_t first, char32_t second) {
  if (first >= kLeads && first < kLeads + kLeadCount && second >= kVowels && second < kVowels + kVowelCount)
    return kSyllables + ((first - kLeads) * kVowelCount + (second - kVowels)) * kTrailCount;
  const bool open = first >= kSyllables && first < kSyllables + kSyllableCount && (first - kSyllables) % kTrailCount == 0;
  if (open && second > kTrails && second < kTrails + kTrailCount) return first + (second - kTrails);
  const auto found = unicode_tables().together.find(pair_key(first, second));
  return found == unicode_tables().together.end() ? 0 : found->second;
}

void compose(std::vector<char32_t>& codes) {
  constexpr std::size_t none = ~std::size_t{0};
  const auto& combining = unicode_tables().combining;
  std::size_t starter = none, kept = 0;
  int last_class = 0;  // of what stands between the starter and this character
  for (const char32_t code : codes) {
    const int own = combining[code];
    const bool next_to_it = starter != none && kept == starter + 1;
    if (starter != none && (next_to_it || last_class < own)) {
      if (const char32_t one = composed(codes[starter], code)) {
        codes[starter] = one;
        continue;
      }
    }
    if (own == 0) starter = kept;
    last_class = own;
    codes[kept++] = code;
  }
  codes.resize(kept);
}

}  // namespace

GeneralCategory category_of(char32_t code_point) { return unicode_tables().categories[code_point]; }

bool is_white_space(char32_t code) {
  return (code >= 0x9 && code <= 0xD) || code == 0x20 || code == 0x85 || code == 0xA0 || code == 0x1680 ||
         (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

CategorySet categories_named(std::string_view name) {
  CategorySet set = 0;
  for (std::size_t i = 0; i < kCategoryNames.size(); ++i) {
    if (kCategoryNames[i] == name || (name.size() == 1 && kCategoryNames[i].front() == name.front())) set |= CategorySet{1} << i;
  }
  return set;
}

std::string nfc(std::string_view text) {
  if (std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; })) return std::string(text);
  std::vector<char32_t> codes;
  codes.reserve(text.size());
  while (!text.empty()) {
    const std::size_t bytes = character_bytes(text);
    add_decomposed(code_point(text.substr(0, bytes)), codes);
    text.remove_prefix(bytes);
  }
  order_marks(codes);
  compose(codes);
  std::string out;
  out.reserve(codes.size());
  for (const char32_t code : codes) append_character(out, code);
  return out;
}

}  // namespace tilewave
