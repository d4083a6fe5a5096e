// Outputs that are whole waves of a device's tiles.
#pragma once

#include <cstdint>

#include "kernels/gemm/tiling.h"

namespace tilewave {

// Tiles down and across: down * across = slots.
struct WaveShape {
  std::int64_t down = 1, across = 1;
};
// As the guides take it for 108 and for 80 SMs. Elsewhere the two nearest divisors, the larger one down while that is at most 16.
WaveShape wave_shape(std::int64_t slots);

// M x N of `waves` whole waves, as square as that can be.
struct Output {
  std::int64_t m = 0, n = 0;
};
Output whole_waves(Tile tile, std::int64_t slots, std::int64_t waves);

}  // namespace tilewave
