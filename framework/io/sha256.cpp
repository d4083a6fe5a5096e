#include "framework/io/sha256.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "framework/io/file.h"

namespace tilewave {
namespace {

constexpr std::int64_t kHashedAtATime = 1 << 20;

// The first 32 bits of the fractions of the cube roots of the first 64 primes.
constexpr std::array<std::uint32_t, 64> kRoots = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
    0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
    0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
    0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
    0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
    0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

std::uint32_t big_endian(const std::byte* bytes) {
  std::uint32_t word = 0;
  for (int i = 0; i < 4; ++i) word = word << 8 | static_cast<std::uint32_t>(bytes[i]);
  return word;
}

}  // namespace

void Sha256::take(const std::byte* block) {
  std::array<std::uint32_t, 64> schedule;
  for (std::size_t t = 0; t < 16; ++t) schedule[t] = big_endian(block + 4 * t);
  for (std::size_t t = 16; t < 64; ++t) {
    const std::uint32_t a = schedule[t - 15], b = schedule[t - 2];
    const std::uint32_t first = std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3, second = std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10;
    schedule[t] = schedule[t - 16] + first + schedule[t - 7] + second;
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (std::size_t t = 0; t < 64; ++t) {
    const std::uint32_t choice = (e & f) ^ (~e & g), majority = (a & b) ^ (a & c) ^ (b & c);
    const std::uint32_t first = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + choice + kRoots[t] + schedule[t];
    const std::uint32_t second = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + majority;
    h = g;
    g = f;
    f = e;
    e = d + first;
    d = c;
    c = b;
    b = a;
    a = first + second;
  }
  const std::array<std::uint32_t, 8> added = {a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < state_.size(); ++i) state_[i] += added[i];
}

void Sha256::add(std::span<const std::byte> bytes) {
  const std::size_t held = bytes_ % kBlock;
  bytes_ += bytes.size();
  if (held > 0) {
    const std::size_t taken = std::min(kBlock - held, bytes.size());
    std::copy_n(bytes.begin(), taken, begun_.begin() + static_cast<std::ptrdiff_t>(held));
    bytes = bytes.subspan(taken);
    if (held + taken < kBlock) return;
    take(begun_.data());
  }
  for (; bytes.size() >= kBlock; bytes = bytes.subspan(kBlock)) take(bytes.data());
  std::copy(bytes.begin(), bytes.end(), begun_.begin());
}

// A one bit, zeros, and the length in bits as 64 bits, to the end of a block.
std::string Sha256::digits() {
  const std::uint64_t bits = 8 * bytes_;
  const std::size_t held = bytes_ % kBlock, zeros = (held < 56 ? 56 : 120) - held;
  std::array<std::byte, 2 * kBlock> padding{};
  padding[0] = std::byte{0x80};
  for (std::size_t i = 0; i < 8; ++i) padding[zeros + i] = static_cast<std::byte>(bits >> (56 - 8 * i));
  add(std::span(padding).first(zeros + 8));
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string text;
  for (const std::uint32_t word : state_) {
    for (int shift = 28; shift >= 0; shift -= 4) text += kHex[word >> shift & 15];
  }
  return text;
}

std::string sha256_of_file(const std::filesystem::path& path) {
  const InputFile file(path);
  Sha256 hash;
  std::vector<std::byte> buffer(static_cast<std::size_t>(std::min(kHashedAtATime, std::max<std::int64_t>(file.bytes(), 1))));
  for (std::int64_t at = 0; at < file.bytes();) {
    const std::int64_t count = std::min<std::int64_t>(std::ssize(buffer), file.bytes() - at);
    const std::span<std::byte> piece(buffer.data(), static_cast<std::size_t>(count));
    file.read(at, piece);
    hash.add(piece);
    at += count;
  }
  return hash.digits();
}

}  // namespace tilewave
