// A tile's sums packed into half their registers, and stored from there part by part while others are made: 16 bytes a thread, after a
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

// A consumer's packed sums of one tile, and how many parts of them have left. Words 2 g and 2 g + 1 of a thread are columns
// 8 g + 2 (lane % 4) and the next, of rows lane / 4 and 8 below. A part is 32 columns of a warp's 16 rows, or of the upper or lower 8 of
// them; a thread's 16 bytes of a row, once a quad has transposed, are columns 8 (g + lane % 4) to 8 (g + lane % 4) + 7 of row
// lane / 4 + 8 h, for which fn(g, h, w) stands.
template <int kColumns, int kPartRows>
struct PackedWords {
  static constexpr int kRowsOfThread = kPartRows / 8, kParts = kColumns / 32 * 2 / kRowsOfThread;
  unsigned words[kColumns / 4];
  int next = kParts;  // none is left

  template <class T>
  __device__ __forceinline__ void take(T, const float (&sums)[kColumns / 2]) {
#pragma unroll
    for (int i = 0; i < kColumns / 4; ++i) words[i] = pack<T>(sums[2 * i], sums[2 * i + 1]);
    next = 0;
  }
  // The parts whose turn it is when `block` of `blocks` stages have been issued: all leave, evenly spread.
  template <class Fn>
  __device__ __forceinline__ void for_turn(int block, int blocks, Fn&& fn) {
    while (next < kParts && next * blocks < kParts * block) {
      choose<0, kParts>(next, fn);
      ++next;
    }
  }
  // All of them, where none has left.
  template <class Fn>
  __device__ __forceinline__ void for_all(Fn&& fn) {
    if (next == kParts) return;
#pragma unroll
    for (int part = 0; part < kParts; ++part) for_part(part, fn);
    next = kParts;
  }

 private:
  template <class Fn>
  __device__ __forceinline__ void for_part(int part, Fn&& fn) const {
#pragma unroll
    for (int row = part * kRowsOfThread; row < (part + 1) * kRowsOfThread; ++row) {
      const int g = row / 2 * 4, h = row % 2;
      unsigned w[4] = {words[2 * g + h], words[2 * g + 2 + h], words[2 * g + 4 + h], words[2 * g + 6 + h]};
      transpose_in_quad(w);
      fn(g, h, w);
    }
  }
  // Branches in halves to the code of one part: a register has no index.
  template <int kFirst, int kEnd, class Fn>
  __device__ __forceinline__ void choose(int part, Fn&& fn) const {
    if constexpr (kEnd - kFirst == 1) {
      asm volatile("");
      for_part(kFirst, fn);
    } else {
      constexpr int kMiddle = (kFirst + kEnd) / 2;
      if (part < kMiddle) {
        choose<kFirst, kMiddle>(part, fn);
      } else {
        choose<kMiddle, kEnd>(part, fn);
      }
    }
  }
};

// The same, and where they go as they are.
template <int kColumns>
struct PackedSums : PackedWords<kColumns, 16> {
  using PackedWords<kColumns, 16>::words;
  std::byte* to = nullptr;  // in D, the thread's first row and, once a quad has transposed, its first column
  int rows = 0, cols = 0;   // of D from there on
  bool first_whole = true;  // whether the thread's first 8 columns are the row's own

  __device__ __forceinline__ void aim(const PackedTarget& target, int warp_row, int tile_col) {
    const int row = warp_row + static_cast<int>(threadIdx.x % 32 / 4), col = tile_col + static_cast<int>(threadIdx.x % 4) * 8;
    to = target.data + 2 * (row * target.ld + col);
    rows = target.rows - row;
    cols = target.own.end - col;
    first_whole = col >= target.own.first_whole();
  }
  // Stores the words of 8 columns that are the row's own.
  __device__ __forceinline__ void store_turn(std::int64_t ld, int block, int blocks) {
    this->for_turn(block, blocks, [&](int g, int h, const unsigned(&w)[4]) { store(ld, g, h, w); });
  }
  __device__ __forceinline__ void store_all(std::int64_t ld) {
    this->for_all([&](int g, int h, const unsigned(&w)[4]) { store(ld, g, h, w); });
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

 private:
  __device__ __forceinline__ void store(std::int64_t ld, int g, int h, const unsigned (&w)[4]) const {
    if (8 * h < rows && 8 * g + 8 <= cols && (g > 0 || first_whole)) {
      *reinterpret_cast<uint4*>(to + 16 * h * ld + 16 * g) = {w[0], w[1], w[2], w[3]};
    }
  }
};

}  // namespace tilewave
