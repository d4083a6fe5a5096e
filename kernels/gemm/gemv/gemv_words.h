// Where words of 16 bytes and lanes fall: arithmetic of the GEMV kernels, for a host to test.
#pragma once

#include <cstdint>

#include "kernels/core/host_device.h"

namespace tilewave {

// Elements of K before this are read by words, those behind it one by one. Where a row begins on any element its words lie in two of
// memory's, the second of which must not end behind the row.
constexpr int gemv_words_end(std::int64_t depth, std::int64_t elements, bool shifted) {
  const std::int64_t there = shifted ? depth - elements : depth;
  return static_cast<int>(there < elements ? 0 : there / elements * elements);
}

// Of eight 32-bit words the first four become those that begin `shift` bytes on: less than 16, a multiple of an element's size.
template <int kSize>
TW_HOST_DEVICE inline void shift_words(std::uint32_t (&w)[8], int shift) {
  for (int i = 0; i < 6; ++i) w[i] = (shift & 8) != 0 ? w[i + 2] : w[i];
  if constexpr (kSize <= 4) {
    for (int i = 0; i < 5; ++i) w[i] = (shift & 4) != 0 ? w[i + 1] : w[i];
  }
  if constexpr (kSize == 2) {
    for (int i = 0; i < 4; ++i) {
      w[i] = static_cast<std::uint32_t>((static_cast<std::uint64_t>(w[i + 1]) << 32 | w[i]) >> (static_cast<unsigned>(shift & 2) * 8));
    }
  }
}

// A warp sums each of kCount values over its lanes by exchanges over 16, 8, ... lanes: in each a lane keeps the half of its values that its
// bit names, as long as there are two. It ends with those from here on, as many as exchanges leave.
template <int kCount>
constexpr int first_value_of_lane(int lane) {
  int first = 0, count = kCount;
  for (int lanes = 16; lanes > 0 && count > 1; lanes /= 2) {
    count /= 2;
    first += (lane & lanes) != 0 ? count : 0;
  }
  return first;
}

}  // namespace tilewave
