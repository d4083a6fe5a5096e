// CRC-32C (Castagnoli; polynomial 0x1EDC6F41 reflected, initial value and final xor 0xFFFFFFFF; RFC 3720, section 12.1), fed in
// pieces of any size: crc32c(b, crc32c(a)) is the checksum of a followed by b. The nine ASCII digits "123456789" give 0xE3069283.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tilewave {

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0);

}  // namespace tilewave
