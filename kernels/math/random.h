// Random numbers as a pure function of a key and a counter (Philox 4x32-10; Salmon, Moraes, Dror, Shaw, "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011), so that any element's draw can be had alone, on any device, in any order.
#pragma once

#include <array>
#include <cstdint>

namespace tilewave {

using PhiloxCounter = std::array<std::uint32_t, 4>;

inline constexpr std::uint32_t kPhiloxMultiplier0 = 0xD2511F53u, kPhiloxMultiplier1 = 0xCD9E8D57u;
inline constexpr std::uint32_t kPhiloxWeyl0 = 0x9E3779B9u, kPhiloxWeyl1 = 0xBB67AE85u;
inline constexpr int kPhiloxRounds = 10;

constexpr PhiloxCounter philox(std::uint64_t key, PhiloxCounter counter) {
  std::uint32_t key0 = static_cast<std::uint32_t>(key), key1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const std::uint64_t product0 = std::uint64_t{kPhiloxMultiplier0} * counter[0];
    const std::uint64_t product1 = std::uint64_t{kPhiloxMultiplier1} * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key0, static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key1, static_cast<std::uint32_t>(product0)};
    key0 += kPhiloxWeyl0;
    key1 += kPhiloxWeyl1;
  }
  return counter;
}

// Whether a draw keeps its element: probability 1 - dropped, exact to 2^-32.
constexpr std::uint32_t keep_threshold(double dropped) {
  const double scaled = dropped * 4294967296.0;
  return scaled >= 4294967295.0 ? 0xffffffffu : static_cast<std::uint32_t>(scaled);
}
constexpr bool keeps(std::uint32_t draw, std::uint32_t threshold) { return draw >= threshold; }

// The key of one step's dropout.
constexpr std::uint64_t dropout_key(std::uint64_t seed, std::int64_t step) {
  return seed + 0x9E3779B97F4A7C15ull * static_cast<std::uint64_t>(step);
}

// The four draws of columns 4 c .. 4 c + 3 of a row; `site` tells apart the places of one step, and `plane` the heads of one site.
constexpr PhiloxCounter dropout_draws(std::uint64_t seed, std::int64_t step, std::uint32_t site, std::uint32_t plane, std::int64_t row,
                                      std::int64_t column_quad) {
  return philox(dropout_key(seed, step), {static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(column_quad), site, plane});
}

}  // namespace tilewave
