// The first k_tiles of a launch's first tiles, which every block has to wait for: so blocks that have begun ask L2 for them while the
// kernel before still ends. That is right whatever that one is about to write, since what it writes goes through L2 too. The launch's
// threads share the lines out, so that each is asked for once: with all that every block is to read, or with all of K, launches took
// longer than without.
#pragma once

#include <algorithm>

#include "kernels/core/view.h"
#include "kernels/cuda/prim/prefetch.h"
#include "kernels/cuda/prim/wgmma.h"

namespace tilewave {

inline constexpr int kFirstKTiles = 4;  // of 64 of K

// What the first tiles have of an operand, of 16-bit elements.
struct FirstKTiles {
  const std::byte* data = nullptr;
  std::int64_t pitch = 0;  // bytes
  Fastest fastest = Fastest::k;
  int k = 0, extent = 0;  // how far it goes along K, and how far the first tiles do along the other dimension

  static FirstKTiles of(const ConstMatrixView& operand, Fastest fastest, std::int64_t extent) {
    const bool along_k = fastest == Fastest::k;
    return {.data = static_cast<const std::byte*>(operand.data),
            .pitch = operand.ld * size_of(operand.dtype),
            .fastest = fastest,
            .k = static_cast<int>(along_k ? operand.cols : operand.rows),
            .extent = static_cast<int>(std::min(along_k ? operand.rows : operand.cols, extent))};
  }

  // By so many threads, of which this is number `thread`: from `first_k` of K on.
  __device__ __forceinline__ void prefetch(int thread, int threads, int first_k) const {
    constexpr int kLine = 64;  // elements
    const bool along_k = fastest == Fastest::k;
    for (int i = thread;; i += threads) {
      const int at_k = first_k + (along_k ? i % kFirstKTiles * kLine : i % (kFirstKTiles * kLine));
      const int other = along_k ? i / kFirstKTiles : i / (kFirstKTiles * kLine) * kLine;
      if (other >= extent) return;
      const std::int64_t row = along_k ? other : at_k, col = along_k ? at_k : other;
      if (at_k < k) prefetch_to_l2(data + row * pitch + 2 * col);
    }
  }
};

}  // namespace tilewave
