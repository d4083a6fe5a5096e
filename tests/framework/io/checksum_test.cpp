#include "framework/io/checksum.h"

#include <gtest/gtest.h>
#include <string>
#include <string_view>

namespace tilewave {
namespace {

std::uint32_t crc_of(std::string_view text, std::uint32_t before = 0) { return crc32c(std::as_bytes(std::span(text)), before); }

TEST(Checksum, PublishedValues) {  // RFC 3720, appendix B.4
  EXPECT_EQ(crc_of("123456789"), 0xe3069283u);
  EXPECT_EQ(crc_of(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc_of(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(crc_of(""), 0u);
}

TEST(Checksum, DoesNotDependOnThePieces) {
  const std::string text = "the quick brown fox jumps over the lazy dog, twice";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    EXPECT_EQ(crc_of(text.substr(cut), crc_of(text.substr(0, cut))), crc_of(text)) << cut;
  }
}

TEST(Checksum, SeesEveryFlippedBit) {
  const std::string text = "thirty-three bytes, an odd number";
  for (std::size_t bit = 0; bit < 8 * text.size(); ++bit) {
    std::string other = text;
    other[bit / 8] = static_cast<char>(other[bit / 8] ^ (1 << bit % 8));
    EXPECT_NE(crc_of(other), crc_of(text)) << bit;
  }
}

}  // namespace
}  // namespace tilewave
