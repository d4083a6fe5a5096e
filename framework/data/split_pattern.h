// The regular expressions by which tokenizers cut text into words, such as GPT-2's
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// Read are alternatives, groups (?:...) and (?i:...), classes, . \s \S \d \D \p{..} \P{..} of general categories, the quantifiers
// ? * + {m} {m,} {m,n} and possessive ?+ *+ ++ of one character, ? of a group, and look-ahead (?=...) (?!...). As in other engines the
// first alternative that matches is taken. Anything else is an InputError that names it.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/data/unicode.h"

namespace tilewave {

// A set of characters, asked by one look-up for ASCII.
class CharacterClass {
 public:
  void add(char32_t first, char32_t last) { ranges_.push_back({first, last}); }
  void add_categories(CategorySet categories) { categories_ |= categories; }
  void add_white_space() { white_space_ = true; }
  void add(const CharacterClass& other) { others_.push_back(other); }
  void complement() { complemented_ = !complemented_; }
  void finish();  // behind the last change

  bool holds(char32_t code) const { return code < ascii_.size() ? ascii_[code] : holds_slowly(code); }

 private:
  struct Range {
    char32_t first, last;
  };
  bool holds_slowly(char32_t code) const;

  std::bitset<128> ascii_;
  std::vector<Range> ranges_;
  std::vector<CharacterClass> others_;
  CategorySet categories_ = 0;
  bool white_space_ = false, complemented_ = false;
};

class SplitPattern {
 public:
  explicit SplitPattern(std::string_view pattern);  // in UTF-8

  struct Match {
    std::size_t begin = 0, end = 0;
  };
  // The first match with a character in it that begins at `from` or behind; of UTF-8 text. InputError where the pattern takes more steps
  // than a text is worth.
  std::optional<Match> find(std::string_view text, std::size_t from) const;

 private:
  friend class SplitPatternReader;
  enum class Kind : std::uint8_t { characters, fork, look_ahead, accept };
  enum class Greed : std::uint8_t { gives_back, possessive };
  struct Node {
    Kind kind = Kind::accept;
    CharacterClass characters;
    std::size_t least = 1, most = 1;
    Greed greed = Greed::gives_back;
    bool negative = false;              // look_ahead
    std::vector<std::size_t> branches;  // of a fork, in order; of look_ahead what must or must not follow
    std::size_t next = 0;
  };
  struct Walk;

  std::optional<std::size_t> match(Walk& walk, std::size_t index, std::size_t at) const;
  std::optional<std::size_t> match_characters(Walk& walk, const Node& node, std::size_t at) const;

  std::vector<Node> nodes_;  // the first one accepts
  std::size_t start_ = 0;
};

}  // namespace tilewave
