// SHA-256 (FIPS 180-4, sections 4.1.2, 4.2.2, 5.1.1, 5.3.3 and 6.2), fed in pieces of any size.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace tilewave {

class Sha256 {
 public:
  void add(std::span<const std::byte> bytes);
  // 64 hexadecimal digits, as sha256sum prints them. Nothing is added behind it.
  std::string digits();

 private:
  static constexpr std::size_t kBlock = 64;  // bytes

  void take(const std::byte* block);

  std::array<std::uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, kBlock> begun_{};  // a block that is not full
  std::uint64_t bytes_ = 0;
};

std::string sha256_of_file(const std::filesystem::path& path);

}  // namespace tilewave
