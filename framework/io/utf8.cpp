#include "framework/io/utf8.h"

#include <cstdio>

namespace tilewave {
namespace {

bool controls(char32_t code) { return code < 0x20 || (code >= 0x7F && code < 0xA0); }

// Spaces, what joins or turns its neighbours, surrogates' room, private use and noncharacters: a glyph of it would say nothing.
bool unseen(char32_t code) {
  const auto within = [code](char32_t first, char32_t last) { return code >= first && code <= last; };
  return controls(code) || code == 0x20 || code == 0xA0 || code == 0xAD || within(0x300, 0x36F) || within(0x200B, 0x200F) ||
         within(0x2000, 0x200A) || within(0x2028, 0x202F) || within(0x205F, 0x206F) || code == 0x3000 || within(0xE000, 0xF8FF) ||
         within(0xFDD0, 0xFDEF) || within(0xFE00, 0xFE0F) || code == 0xFEFF || (code & 0xFFFE) == 0xFFFE || code >= 0xE0000;
}

}  // namespace

std::size_t character_bytes(std::string_view text) {
  const auto byte = [&](std::size_t at) { return at < text.size() ? static_cast<unsigned char>(text[at]) : 0u; };
  if (text.empty()) return 0;
  const unsigned lead = byte(0), second = byte(1);
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
  for (std::size_t at = 1; at < length; ++at) {
    if ((byte(at) & 0xC0u) != 0x80u) return 0;
  }
  return length;
}

char32_t code_point(std::string_view character) {
  constexpr unsigned lead_bits[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
  char32_t code = static_cast<unsigned char>(character.front()) & lead_bits[character.size()];
  for (const char byte : character.substr(1)) code = code << 6 | (static_cast<unsigned char>(byte) & 0x3Fu);
  return code;
}

void append_character(std::string& text, char32_t code_point) {
  const auto tail = [&](int shift) { text += static_cast<char>(0x80u | (code_point >> shift & 0x3Fu)); };
  if (code_point < 0x80) {
    text += static_cast<char>(code_point);
  } else if (code_point < 0x800) {
    text += static_cast<char>(0xC0u | code_point >> 6);
    tail(0);
  } else if (code_point < 0x10000) {
    text += static_cast<char>(0xE0u | code_point >> 12);
    tail(6), tail(0);
  } else {
    text += static_cast<char>(0xF0u | code_point >> 18);
    tail(12), tail(6), tail(0);
  }
}

std::string escaped(std::string_view text, LineEnds line_ends) {
  constexpr std::string_view hex = "0123456789abcdef";
  std::string out;
  while (!text.empty()) {
    const std::size_t bytes = character_bytes(text);
    const std::string_view character = text.substr(0, bytes == 0 ? 1 : bytes);
    const bool kept_end = line_ends == LineEnds::kept && (character == "\n" || character == "\t");
    if (kept_end || (bytes > 0 && !controls(code_point(character)))) {
      out += character;
    } else {
      for (const char each : character) {
        const auto byte = static_cast<unsigned char>(each);
        out += {'\\', 'x', hex[byte >> 4], hex[byte & 15u]};
      }
    }
    text.remove_prefix(character.size());
  }
  return out;
}

std::string named_character(char32_t code_point) {
  char number[16];
  std::snprintf(number, sizeof number, "U+%04X", static_cast<unsigned>(code_point));
  if (unseen(code_point)) return number;
  std::string name = "'";
  append_character(name, code_point);
  return name + "' (" + number + ")";
}

}  // namespace tilewave
