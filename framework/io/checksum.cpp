// CRC-32C, eight bytes a step: table[k][b] is the remainder of byte b followed by k zero bytes (Kounavis and Berry, "slicing by 8").
#include "framework/io/checksum.h"

#include <array>
#include <bit>
#include <cstring>

namespace tilewave {
namespace {

using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr Tables kTables = [] {
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t remainder = byte;
    for (int bit = 0; bit < 8; ++bit) remainder = (remainder >> 1) ^ ((remainder & 1u) != 0 ? 0x82f63b78u : 0u);
    tables[0][byte] = remainder;
  }
  for (std::size_t zeros = 1; zeros < tables.size(); ++zeros) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t shorter = tables[zeros - 1][byte];
      tables[zeros][byte] = (shorter >> 8) ^ tables[0][shorter & 0xffu];
    }
  }
  return tables;
}();

static_assert(std::endian::native == std::endian::little, "eight bytes are loaded as one little-endian word");

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before) {
  std::uint32_t remainder = ~before;
  while (bytes.size() >= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), 8);
    word ^= remainder;
    remainder = 0;
    for (std::size_t i = 0; i < 8; ++i) remainder ^= kTables[7 - i][(word >> (8 * i)) & 0xffu];
    bytes = bytes.subspan(8);
  }
  for (const std::byte byte : bytes) remainder = (remainder >> 8) ^ kTables[0][(remainder ^ static_cast<std::uint32_t>(byte)) & 0xffu];
  return ~remainder;
}

}  // namespace tilewave
