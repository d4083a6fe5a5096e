// What tokenizers ask of a character: its general category (Unicode 16), whether it is white space, and text in the
// normalization form C (Unicode 9): both as Hugging Face's tokenizers have them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tilewave {

// Unicode's two-letter names.
// NOLINTBEGIN(readability-identifier-naming)
enum class GeneralCategory : std::uint8_t {
  Lu,
  Ll,
  Lt,
  Lm,
  Lo,
  Mn,
  Mc,
  Me,
  Nd,
  Nl,
  No,
  Pc,
  Pd,
  Ps,
  Pe,
  Pi,
  Pf,
  Po,
  Sm,
  Sc,
  Sk,
  So,
  Zs,
  Zl,
  Zp,
  Cc,
  Cf,
  Cs,
  Co,
  Cn
};
// NOLINTEND(readability-identifier-naming)

using CategorySet = std::uint32_t;  // a bit for each category

GeneralCategory category_of(char32_t code_point);
bool is_white_space(char32_t code_point);  // the property White_Space

// The categories that \p{name} means: of one letter ("L") or of two ("Lu"); 0 for any other name.
CategorySet categories_named(std::string_view name);

std::string nfc(std::string_view text);  // of UTF-8 text

}  // namespace tilewave
