// Characters of every length, what is none, and what a person is shown of them.
#include "framework/io/utf8.h"

#include <gtest/gtest.h>

namespace tilewave {
namespace {

TEST(Characters, GoThereAndBack) {
  for (char32_t code = 0; code <= kLastCodePoint; code += code < 0x3000 ? 1 : 97) {
    if (code >= 0xD800 && code <= 0xDFFF) continue;
    std::string text;
    append_character(text, code);
    const std::size_t bytes = text.size();
    ASSERT_EQ(character_bytes(text + "z"), bytes) << named_character(code);
    ASSERT_EQ(code_point(text), code);
    if (bytes > 1) {
      ASSERT_EQ(character_bytes(text.substr(0, bytes - 1)), 0u) << "a character that has only begun";
    }
  }
  EXPECT_EQ(character_bytes(""), 0u);
  EXPECT_EQ(character_bytes("\x80"), 0u);
}

TEST(Escaped, ShowsATerminalNoOrders) {
  EXPECT_EQ(escaped("plain é€😀", LineEnds::escaped), "plain é€😀");
  EXPECT_EQ(escaped(std::string_view("\x1b[31m\0\r\x7F", 8), LineEnds::kept), "\\x1b[31m\\x00\\x0d\\x7f");
  EXPECT_EQ(escaped("a\n\tb", LineEnds::kept), "a\n\tb");
  EXPECT_EQ(escaped("a\n\tb", LineEnds::escaped), "a\\x0a\\x09b");
  EXPECT_EQ(escaped("\xC2\x9B"
                    "2J",
                    LineEnds::kept),
            "\\xc2\\x9b2J")
      << "what a terminal takes for ESC [";
  EXPECT_EQ(escaped("\xC3(\xFF\xE2\x82", LineEnds::kept), "\\xc3(\\xff\\xe2\\x82");
}

TEST(NamedCharacter, HasAGlyphWhereOneCanBeSeen) {
  EXPECT_EQ(named_character(U'é'), "'é' (U+00E9)");
  EXPECT_EQ(named_character(U'\u2585'), "'▅' (U+2585)");
  EXPECT_EQ(named_character(U'😀'), "'😀' (U+1F600)");
  for (const auto& [code, name] :
       {std::pair{U'\0', "U+0000"}, std::pair{U'\x1B', "U+001B"}, std::pair{U'\u0301', "U+0301"}, std::pair{U'\u202E', "U+202E"},
        std::pair{U'\uFDD0', "U+FDD0"}, std::pair{char32_t{0x10FFFF}, "U+10FFFF"}}) {
    EXPECT_EQ(named_character(code), name);
  }
}

}  // namespace
}  // namespace tilewave
