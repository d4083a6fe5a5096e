#include "models/figures/whole_waves.h"

#include <algorithm>
#include <cmath>

namespace tilewave {

WaveShape wave_shape(std::int64_t slots) {
  constexpr std::int64_t kMaxDown = 16;
  if (slots == 108) return {.down = 9, .across = 12};  // Matrix Multiplication Background, section 3.2
  if (slots == 80) return {.down = 5, .across = 16};   // Deep Learning Performance, section 5.2.2
  std::int64_t smaller = 1;
  for (std::int64_t divisor = 1; divisor * divisor <= slots; ++divisor) {
    if (slots % divisor == 0) smaller = divisor;
  }
  const std::int64_t larger = slots / smaller;
  return larger <= kMaxDown ? WaveShape{.down = larger, .across = smaller} : WaveShape{.down = smaller, .across = larger};
}

Output whole_waves(Tile tile, std::int64_t slots, std::int64_t waves) {
  const std::int64_t tiles = slots * waves;
  Output best;
  double least = INFINITY;
  for (std::int64_t down = 1; down <= tiles; ++down) {
    if (tiles % down != 0) continue;
    const Output output = {.m = down * tile.m, .n = tiles / down * tile.n};
    const double skew = std::abs(std::log(static_cast<double>(output.m) / static_cast<double>(output.n)));
    if (skew < least) least = skew, best = output;
  }
  return best;
}

}  // namespace tilewave
