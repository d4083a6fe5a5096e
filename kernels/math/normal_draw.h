// A nearly normal number for each place of a matrix: the sum of four uniform draws, once for host and device.
#pragma once

#include "kernels/core/host_device.h"
#include "kernels/math/random.h"

namespace tilewave {

// Exact but for the last multiplication, so that every device has the same. Mean 0, variance 1, within 2 sqrt(3).
TW_HOST_DEVICE inline double normal_draw(std::uint64_t seed, std::int64_t row, std::int64_t column) {
  const auto r = static_cast<std::uint64_t>(row), c = static_cast<std::uint64_t>(column);
  const PhiloxCounter draws = philox(seed, {static_cast<std::uint32_t>(r), static_cast<std::uint32_t>(r >> 32),
                                            static_cast<std::uint32_t>(c), static_cast<std::uint32_t>(c >> 32)});
  std::uint64_t sum = 0;
  for (const std::uint32_t draw : draws) sum += draw;
  return (static_cast<double>(sum) * 0x1p-32 - 2.0) * 1.7320508075688772;
}

}  // namespace tilewave
