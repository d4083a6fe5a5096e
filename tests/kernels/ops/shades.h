// Shades for tests of normalize_pixels: bytes in words, and a table of which no entry is another's.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/ops/normalize_pixels.h"
#include "tests/kernels/support.h"

namespace tilewave::testing_support {

// Every shade in every channel where there are rows enough: row r has shade r + 85 c.
inline std::vector<std::uint8_t> every_shade(std::int64_t rows, std::int64_t channels) {
  std::vector<std::uint8_t> shades;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < channels; ++c) shades.push_back(static_cast<std::uint8_t>(r + 85 * c));
  }
  return shades;
}

// Words of a batch of so many shades, of which those given are there; the others are 0xAD, a shade that would not be zero.
inline Matrix<std::int32_t> words_of(const std::vector<std::uint8_t>& shades, std::int64_t of) {
  std::vector<std::int32_t> words(static_cast<std::size_t>(words_of_shades(of)));
  auto* const bytes = reinterpret_cast<std::uint8_t*>(words.data());
  std::fill_n(bytes, words.size() * 4, std::uint8_t{0xAD});
  std::copy(shades.begin(), shades.end(), bytes);
  return Matrix<std::int32_t>::row_of(words);
}

// No entry is zero.
inline Matrix<float> table_of(std::int64_t channels) {
  Matrix<float> table(channels, kShades);
  for (std::int64_t c = 0; c < channels; ++c) {
    for (std::int64_t shade = 0; shade < kShades; ++shade) {
      const double value = static_cast<double>(shade) / 255, mean = 0.485 - 0.04 * static_cast<double>(c);
      table(c, shade) = static_cast<float>((value - mean) / (0.229 + 0.01 * static_cast<double>(c)));
    }
  }
  return table;
}

}  // namespace tilewave::testing_support
