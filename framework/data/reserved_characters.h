// What SentencePiece keeps for itself, and how a text may hold it all the same. Its trainer ends a text at NUL, takes U+2581 for a space
// and leaves out every line with U+2585, so a tokenizer picks three code points that its training text lacks (U+FDD0 onward, which Unicode
// gives no meaning), and they stand in for the three wherever SentencePiece sees text. The mark at a model's end names them; a model
// without one was trained before there were stand-ins, and its text goes as it is.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/io/utf8.h"

namespace tilewave {

class CharacterSet {
 public:
  void add(char32_t code) { has_[code] = true; }
  bool contains(char32_t code) const { return has_[code]; }

 private:
  std::vector<bool> has_ = std::vector<bool>(kLastCodePoint + 1);
};

class ReservedCharacters {
 public:
  static constexpr char32_t kSpace = U'\u2581', kSkipped = U'\u2585';  // a space in a piece; what no piece can hold

  ReservedCharacters() = default;                              // no stand-ins
  explicit ReservedCharacters(const CharacterSet& text);       // stand-ins that the text lacks
  static ReservedCharacters of_model(std::string_view model);  // as its mark has them; InputError where that makes no sense

  // The field of a serialised model that names the stand-ins, which SentencePiece's own tools pass over. Empty without any.
  std::string mark() const;
  static std::string_view without_mark(std::string_view model);

  // As SentencePiece is to see the text; `room` holds what differs from it. A stand-in in the text itself becomes what is never known.
  std::string_view hidden(std::string_view text, std::string& room) const;
  // The piece of a single character of a text.
  std::string piece_of(char32_t code) const;
  // Adds the text of a piece.
  void add_text(std::string_view piece, std::string& text) const;
  // For a person's eyes: U+2581 is a space, <U+2581> itself.
  std::string shown(std::string_view piece) const;

 private:
  char32_t hide(char32_t code) const;
  char32_t reveal(char32_t code) const;

  void note_first_bytes();

  std::optional<std::array<char32_t, 3>> stand_ins_;
  std::array<bool, 256> may_differ_{};  // first bytes of characters that are hidden
};

}  // namespace tilewave
