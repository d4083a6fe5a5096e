// A tile's sums packed into half their registers, and stored from there part by part while others are made: 16 bytes a thread, after a
// transposition in quads.
#pragma once

#include "kernels/cuda/gemm/sm90/warp_strips.h"

namespace tilewave {

// How a tile's columns come to wgmma's, of which a thread has columns 8 g + 2 (lane % 4) and the next for each g: as they are, or dealt
// out so that four of these pairs are 8 neighbours, 16 bytes of a row.
enum class Columns : bool { in_order, dealt };

// Which of the tile's columns a thread's pair g begins with.
template <Columns kOrder, int kColumns>
__device__ __forceinline__ int column_of_pair(int g) {
  constexpr int kGroups = kColumns / 32;
  const int place = static_cast<int>(threadIdx.x % 4);
  return kOrder == Columns::dealt ? g % kGroups * 32 + place * 8 + g / kGroups * 2 : g * 8 + place * 2;
}

// A consumer's packed sums of one tile, and how many parts of them have left. Words 2 g and 2 g + 1 of a thread are its pair g of rows
// lane / 4 and 8 below. A part is 32 columns of a warp's 16 rows, or of the upper or lower 8 of them; a thread's 16 bytes of a row, dealt
// or once a quad has transposed, are columns 8 (g + lane % 4) to 8 (g + lane % 4) + 7 of row lane / 4 + 8 h, for which fn(g, h, w) stands.
template <int kColumns, int kChunkRows, Columns kOrder = Columns::in_order>
struct PackedWords {
  static constexpr int kRowsOfThread = kChunkRows / 8, kChunks = kColumns / 32 * 2 / kRowsOfThread;
  unsigned words[kColumns / 4];
  int next = kChunks;  // none is left
  int due = 0;         // parts whose turn has come and which have not left, times stages

  template <class T>
  __device__ __forceinline__ void take(T, const float (&accumulators)[kColumns / 2]) {
#pragma unroll
    for (int i = 0; i < kColumns / 4; ++i) words[i] = pack<T>(accumulators[2 * i], accumulators[2 * i + 1]);
    next = due = zero_of_thread();
  }
  // The parts whose turn it is, called at each of a tile's `stages`: all leave, evenly spread.
  template <class Fn>
  __device__ __forceinline__ void for_due(int stages, Fn&& fn) {
    due += kChunks;
#pragma unroll 1
    while (due > 0 && next < kChunks) {
      due -= stages;
      choose<0, kChunks>(next, fn);
      ++next;
    }
  }
  // All of them, where none has left.
  template <class Fn>
  __device__ __forceinline__ void for_all(Fn&& fn) {
    if (next == kChunks) return;
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk) for_chunk(chunk, fn);
    next = kChunks;
  }
  // The same of sums that are packed as they leave.
  template <class T, class Fn>
  __device__ __forceinline__ static void for_all(T, const float (&accumulators)[kColumns / 2], Fn&& fn) {
    const auto word_at = [&](int word) { return pack<T>(accumulators[2 * word], accumulators[2 * word + 1]); };
#pragma unroll
    for (int row = 0; row < kChunks * kRowsOfThread; ++row) finish_row(row, word_at, fn);
  }

 private:
  // 0, which the compiler does not know for every thread's: a branch on what all threads of a warp have alike waits for the uniform
  // datapath, some 25 cycles, of which a choice among 16 parts would take five.
  __device__ __forceinline__ static int zero_of_thread() { return static_cast<int>(threadIdx.x >> 12); }

  template <class Fn>
  __device__ __forceinline__ void for_chunk(int chunk, Fn&& fn) const {
    const auto word_at = [&](int word) { return words[word]; };
#pragma unroll
    for (int row = chunk * kRowsOfThread; row < (chunk + 1) * kRowsOfThread; ++row) finish_row(row, word_at, fn);
  }
  // A thread's 16 bytes of one row, whose words are word_at(index).
  template <class WordAt, class Fn>
  __device__ __forceinline__ static void finish_row(int row, WordAt&& word_at, Fn&& fn) {
    const int group = row / 2, h = row % 2;
    unsigned w[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) w[i] = word_at(2 * (kOrder == Columns::dealt ? i * (kColumns / 32) + group : 4 * group + i) + h);
    asm volatile("" : "+r"(w[0]), "+r"(w[1]), "+r"(w[2]), "+r"(w[3]));  // what comes of them is not computed ahead of its turn
    if constexpr (kOrder == Columns::in_order) transpose_in_quad(w);
    fn(4 * group, h, w);
  }
  // Branches in halves to the code of one part: a register has no index.
  template <int kFirst, int kEnd, class Fn>
  __device__ __forceinline__ void choose(int chunk, Fn&& fn) const {
    if constexpr (kEnd - kFirst == 1) {
      asm volatile("");
      for_chunk(kFirst, fn);
    } else {
      constexpr int kMiddle = (kFirst + kEnd) / 2;
      if (chunk < kMiddle) {
        choose<kFirst, kMiddle>(chunk, fn);
      } else {
        choose<kMiddle, kEnd>(chunk, fn);
      }
    }
  }
};

}  // namespace tilewave
