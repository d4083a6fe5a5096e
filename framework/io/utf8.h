// The characters of UTF-8 text: where one ends, its code point, and how one is shown to a person.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tilewave {

inline constexpr char32_t kLastCodePoint = 0x10FFFF;

// The bytes of the character that a text begins with; 0 where no UTF-8 text begins so (overlong forms, surrogates and U+110000 onward
// included), or where there is none.
std::size_t character_bytes(std::string_view text);

char32_t code_point(std::string_view character);  // of one whole character

void append_character(std::string& text, char32_t code_point);

enum class LineEnds : std::uint8_t { kept, escaped };

// For a terminal: control characters, those from U+0080 on too, and bytes that are no UTF-8 as \x1b. `kept` leaves line feeds and tabs.
std::string escaped(std::string_view text, LineEnds line_ends);

// For a sentence: 'é' (U+00E9); only the code point of what cannot be seen.
std::string named_character(char32_t code_point);

}  // namespace tilewave
