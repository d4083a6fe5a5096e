// The order in which tiles are taken. Blocks that run at the same time should share what they read: tiles go down a group of
// columns of D, group after group, so that the tiles of a wave make a patch nearly as high as wide, whose operands stay in L2.
// A tile's place takes divisions by numbers that the host knows: it multiplies by their reciprocals.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace tilewave {

// x / divisor for any 32-bit x, by a reciprocal of 33 bits whose highest is implied (Granlund and Montgomery, "Division by invariant
// integers using multiplication", figure 4.1).
struct Divisor {
  unsigned divisor = 1, reciprocal = 1, first_shift = 0, second_shift = 0;

  static Divisor of(unsigned divisor) {
    const unsigned bits = static_cast<unsigned>(std::bit_width(divisor - 1));  // of the power of two that is no less
    const std::uint64_t rest = (std::uint64_t{1} << bits) - divisor;
    return {.divisor = divisor,
            .reciprocal = static_cast<unsigned>((rest << 32) / divisor + 1),
            .first_shift = std::min(bits, 1u),
            .second_shift = bits == 0 ? 0 : bits - 1};
  }
  __device__ __forceinline__ unsigned quotient(unsigned x) const {
    const unsigned high = __umulhi(reciprocal, x);
    return (high + ((x - high) >> first_shift)) >> second_shift;
  }
  __device__ __forceinline__ unsigned remainder(unsigned x) const { return x - quotient(x) * divisor; }
};

struct TileAt {
  int m = 0, n = 0;
};

struct Raster {
  int tiles = 0, whole = 0;  // all, and those of bands of full width
  int group = 1;             // tiles along M
  Divisor per_group, width, last_width;

  // Bands of at most `band` tiles of the tiles_m x tiles_n.
  static Raster of(int tiles_m, int tiles_n, int group) {
    const int width = std::min(group, tiles_m), rest = tiles_m % width;
    return {.tiles = tiles_m * tiles_n,
            .whole = (tiles_m - rest) * tiles_n,
            .group = width,
            .per_group = Divisor::of(static_cast<unsigned>(width * tiles_n)),
            .width = Divisor::of(static_cast<unsigned>(width)),
            .last_width = Divisor::of(static_cast<unsigned>(rest == 0 ? width : rest))};
  }
  // How far along M and N the first `count` reach, or farther.
  TileAt reach(int count) const {
    const int of_group = static_cast<int>(per_group.divisor), groups = (count + of_group - 1) / of_group;
    return {.m = groups * group, .n = groups > 1 ? of_group / group : (count + group - 1) / group};
  }
  __device__ __forceinline__ TileAt operator()(int index) const {
    const unsigned at = per_group.quotient(static_cast<unsigned>(index)), within = static_cast<unsigned>(index) - at * per_group.divisor;
    const Divisor& across = index < whole ? width : last_width;
    const unsigned n = across.quotient(within);
    return {.m = static_cast<int>(at) * group + static_cast<int>(within - n * across.divisor), .n = static_cast<int>(n)};
  }
};

}  // namespace tilewave
