// A tile's sums packed into half their registers, and stored from there piece by piece while others are made: 16 bytes a thread, after a
// transposition in quads.
#pragma once

#include "kernels/cuda/gemm/warp_strips.h"
#include "kernels/gemm/rows/residues.h"

namespace tilewave {

// Word i of each of a quad's threads becomes thread i's, in the threads' order: what were 2 columns of 4 groups in each are 8 columns
// of one.
__device__ __forceinline__ void transpose_in_quad(unsigned (&w)[4]) {
  const auto exchange = [&](int low, int high, int distance) {
    const bool upper = (threadIdx.x & static_cast<unsigned>(distance)) != 0;
    const unsigned theirs = __shfl_xor_sync(0xffffffffu, upper ? w[low] : w[high], distance);
    w[low] = upper ? theirs : w[low];
    w[high] = upper ? w[high] : theirs;
  };
  exchange(0, 1, 1);
  exchange(2, 3, 1);
  exchange(0, 2, 2);
  exchange(1, 3, 2);
}

// D's rows in memory, or those of one residue.
struct PackedTarget {
  std::byte* data = nullptr;
  std::int64_t ld = 0;
  int rows = 0;
  OwnColumns own;
};

// A consumer's packed sums of one tile. Words 2 g and 2 g + 1 of a thread are columns 8 g + 2 (lane % 4) and the next, of rows lane / 4
// and 8 below.
template <int kColumns>
struct PackedWords {
  static constexpr int kPieceColumns = 32, kPieces = kColumns / kPieceColumns;
  unsigned words[kColumns / 4];

  template <class T>
  __device__ __forceinline__ void take(T, const float (&sums)[kColumns / 2]) {
#pragma unroll
    for (int i = 0; i < kColumns / 4; ++i) words[i] = pack<T>(sums[2 * i], sums[2 * i + 1]);
  }
  // fn(g, h, w) for kPieceColumns of them, once a quad has transposed: w is columns 8 (g + lane % 4) to 8 (g + lane % 4) + 7 of row
  // lane / 4 + 8 h.
  template <class Fn>
  __device__ __forceinline__ void for_piece(int piece, Fn&& fn) const {
#pragma unroll
    for (int at = 0; at < kPieces; ++at) {
      if (at == piece) {
        asm volatile("");  // a branch: a register has no index
        const int g = at * (kPieceColumns / 8);
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          unsigned w[4] = {words[2 * g + h], words[2 * g + 2 + h], words[2 * g + 4 + h], words[2 * g + 6 + h]};
          transpose_in_quad(w);
          fn(g, h, w);
        }
      }
    }
  }
};

// The same, and where they go as they are.
template <int kColumns>
struct PackedSums : PackedWords<kColumns> {
  using PackedWords<kColumns>::words;
  std::byte* to = nullptr;  // in D, the thread's first row and, once a quad has transposed, its first column
  int rows = 0, cols = 0;   // of D from there on
  bool first_whole = true;  // whether the thread's first 8 columns are the row's own
  bool waiting = false;

  __device__ __forceinline__ void aim(const PackedTarget& target, int warp_row, int tile_col) {
    const int row = warp_row + static_cast<int>(threadIdx.x % 32 / 4), col = tile_col + static_cast<int>(threadIdx.x % 4) * 8;
    to = target.data + 2 * (row * target.ld + col);
    rows = target.rows - row;
    cols = target.own.end - col;
    first_whole = col >= target.own.first_whole();
    waiting = true;
  }
  // A piece's words of 8 columns that are the row's own.
  __device__ __forceinline__ void store(std::int64_t ld, int piece) const {
    this->for_piece(piece, [&](int g, int h, unsigned(&w)[4]) {
      if (8 * h < rows && 8 * g + 8 <= cols && (g > 0 || first_whole)) {
        *reinterpret_cast<uint4*>(to + 16 * h * ld + 16 * g) = {w[0], w[1], w[2], w[3]};
      }
    });
  }

  // The row's own columns of the words that it shares with the rows before and after it.
  __device__ __forceinline__ void store_ends(const PackedTarget& target, int tile_col) const {
    const int pair = static_cast<int>(threadIdx.x % 4) * 2;
    if (target.own.whole(tile_col) && tile_col + kColumns <= target.own.end_whole()) return;
#pragma unroll
    for (int g = 0; g < kColumns / 8; ++g) {
      const int col = tile_col + 8 * g;
      if (target.own.whole(col) || col >= target.own.end) continue;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int h = i / 2, element = pair + i % 2;
        auto* const row = reinterpret_cast<unsigned short*>(to + 16 * h * target.ld + 16 * g) - 4 * pair;
        if (8 * h < rows && target.own.has(col + element)) row[element] = static_cast<unsigned short>(words[2 * g + h] >> 16 * (i % 2));
      }
    }
  }
};

}  // namespace tilewave
