// From a warp's sums to D straight from registers, where they are D as they are, in 16 bits, the tile's columns lie wholly in D and its
// rows start on 16 bytes: lanes exchange words in quads until each has runs of kRun columns of a row. No shared memory, so no warp waits
// for another.
#pragma once

#include "kernels/cuda/core/pairs.h"
#include "kernels/cuda/gemm/sm80/warp_tile.h"

namespace tilewave {

// The warp's tile begins at line `top` of the block's and at column `col` of D.
template <class Cta, bool kSumsRows>
__device__ __forceinline__ void store_runs(const WarpTile<Cta, kSumsRows>& tile, const Plane& d, const TileLines& lines, int top,
                                           std::int64_t col, int lane) {
  using T = typename Cta::Element;
#pragma unroll
  for (int eight = 0; eight < 2 * tile.kDown; ++eight) {  // rows
    const int line = top + 8 * eight + lane / 4;
    T* const row = static_cast<T*>(d.data) + lines.row(line) * d.ld + col;
#pragma unroll
    for (int g = 0; g < tile.kAcross; g += 4) {  // 32 columns
      unsigned w[4];
#pragma unroll
      for (int x = 0; x < 4; ++x) {
        const float(&accumulators)[4] = tile.accumulators[eight / 2][g + x];
        w[x] = pack<T>(accumulators[eight % 2 * 2], accumulators[eight % 2 * 2 + 1]);
      }
      transpose_in_quad(w);
      if (lines.has(line)) *reinterpret_cast<uint4*>(row + 8 * g + lane % 4 * kRun) = {w[0], w[1], w[2], w[3]};
    }
  }
}

}  // namespace tilewave
