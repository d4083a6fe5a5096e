// Layer normalisation's gradients of rows that stay in registers: a block has a chunk of rows, of which groups of its threads take one each
// at a time.
#pragma once

#include "kernels/cuda/core/rows.h"
#include "kernels/cuda/prim/prefetch.h"
#include "kernels/ops/layer_norm.h"

namespace tilewave {

constexpr int kMaxPacks = 2;        // of a row that a thread keeps
constexpr int kChunkThreads = 256;  // of a block of differentiate_chunk

// What a thread of a group of kThreads, which share a row, has of it.
template <class T>
struct RowOperands {
  Pack<T> x[kMaxPacks], dy[kMaxPacks];
  Arithmetic<T> mean, rstd;
};

// dx of one chunk of rows, and the chunk's dgamma and dbeta into two rows of `partial`. A group of kThreads takes a row, kMaxPacks
// packs of columns a thread, while its next one is on its way; the groups of a block take rows in turn, past the end a row of zeros, and
// add up in order at the end.
template <class T, int kThreads, PackAccess kAccess>
__global__ void __launch_bounds__(kChunkThreads, 2) differentiate_chunk(const LayerNormBackwardArgs args, const std::int64_t chunk_rows) {
  using A = Arithmetic<T>;
  using Sums = Pack<A, kPackWidth<T>>;
  constexpr int kWidth = kPackWidth<T>, kGroups = kChunkThreads / kThreads, kWarps = kThreads / kWarp, kPacks = kMaxPacks * kThreads;
  constexpr int kQuads = sizeof(Sums) / sizeof(uint4);
  __shared__ A scratch[2][kGroups][kWarps][2];                                                  // two, so that one barrier a turn is enough
  __shared__ uint4 group_sums[kGroups > 1 ? kGroups : 1][2][kQuads][kGroups > 1 ? kPacks : 1];  // neighbours 16 bytes apart: no bank twice
  const std::int64_t d = args.x.cols, begin = blockIdx.x * chunk_rows, end = min(args.x.rows, begin + chunk_rows);
  const A reciprocal_d = A(1) / static_cast<A>(d);
  const auto column_of = [&](int k) { return static_cast<std::int64_t>((k * kThreads + threadIdx.x) * kWidth); };
  const auto load_own = [&](const T* row, int k) {
    return column_of(k) < d ? load_pack<kAccess, kWidth>(row, column_of(k), d) : Pack<T>{};
  };
  const auto load_row = [&](std::int64_t r) {
    RowOperands<T> row;
#pragma unroll
    for (int k = 0; k < kMaxPacks; ++k) {
      row.x[k] = load_own(args.x.row<T>(r), k);
      row.dy[k] = load_own(args.dy.row<T>(r), k);
      if (args.accumulate && column_of(k) < d) prefetch_to_l2(args.dx.row<T>(r) + column_of(k));
    }
    row.mean = *args.mean.row<A>(r);
    row.rstd = *args.rstd.row<A>(r);
    return row;
  };
  RowOperands<T> next{};
  if (begin + threadIdx.y < end) next = load_row(begin + threadIdx.y);
  Pack<T> gamma[kMaxPacks];
#pragma unroll
  for (int k = 0; k < kMaxPacks; ++k) gamma[k] = load_own(args.gamma.row<T>(0), k);
  A dgamma[kMaxPacks][kWidth] = {}, dbeta[kMaxPacks][kWidth] = {};
  int turn = 0;
  for (std::int64_t r = begin + threadIdx.y; r < end + threadIdx.y; r += kGroups, turn ^= 1) {
    // Load.
    const RowOperands<T> row = next;
    next = r + kGroups < end ? load_row(r + kGroups) : RowOperands<T>{};

    // Reduce: sum(g) and sum(g h).
    A sum_g = 0, sum_gh = 0;
#pragma unroll
    for (int k = 0; k < kMaxPacks; ++k) {
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        const A g = load(row.dy[k].get(i)) * load(gamma[k].get(i)), h = (load(row.x[k].get(i)) - row.mean) * row.rstd;
        sum_g += g;
        sum_gh = fma(g, h, sum_gh);
      }
    }
    sum_g = fold_warp(sum_g, Sum());
    sum_gh = fold_warp(sum_gh, Sum());
    if constexpr (kWarps > 1) {
      A(&sums)[kWarps][2] = scratch[turn][threadIdx.y];
      if (threadIdx.x % kWarp == 0) {
        sums[threadIdx.x / kWarp][0] = sum_g;
        sums[threadIdx.x / kWarp][1] = sum_gh;
      }
      __syncthreads();
      sum_g = sums[0][0];
      sum_gh = sums[0][1];
#pragma unroll
      for (int warp = 1; warp < kWarps; ++warp) {
        sum_g += sums[warp][0];
        sum_gh += sums[warp][1];
      }
    }
    const A mean_g = sum_g * reciprocal_d, mean_gh = sum_gh * reciprocal_d;

    // Store.
#pragma unroll
    for (int k = 0; k < kMaxPacks; ++k) {
      if (column_of(k) >= d || r >= end) break;
      Pack<T> earlier{};
      if (args.accumulate) earlier = load_pack<kAccess, kWidth>(args.dx.row<const T>(r), column_of(k), d);
      A dx[kWidth];
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        const A dy = load(row.dy[k].get(i)), h = (load(row.x[k].get(i)) - row.mean) * row.rstd;
        dgamma[k][i] = fma(dy, h, dgamma[k][i]);
        dbeta[k][i] += dy;
        dx[i] = fma(row.rstd, fma(-h, mean_gh, fma(dy, load(gamma[k].get(i)), -mean_g)), load(earlier.get(i)));
      }
      store_pack<kAccess>(args.dx.row<T>(r), column_of(k), d, pack_of<T>(dx));
    }
  }

  // Reduce the groups' sums, and store: a thread takes a pack of dgamma's or of dbeta's at a time.
  const auto store_sums = [&](int which, std::int64_t column, const Sums& sums) {
    if (column < d) store_pack<kAccess>(args.partial.row<A>(2 * blockIdx.x + which), column, d, sums);
  };
  if constexpr (kGroups == 1) {
#pragma unroll
    for (int k = 0; k < kMaxPacks; ++k) {
      store_sums(0, column_of(k), pack_of<A>(dgamma[k]));
      store_sums(1, column_of(k), pack_of<A>(dbeta[k]));
    }
  } else {
#pragma unroll
    for (int k = 0; k < kMaxPacks; ++k) {
      const Sums sums[2] = {pack_of<A>(dgamma[k]), pack_of<A>(dbeta[k])};
#pragma unroll
      for (int which = 0; which < 2; ++which) {
#pragma unroll
        for (int quad = 0; quad < kQuads; ++quad) {
          memcpy(&group_sums[threadIdx.y][which][quad][k * kThreads + threadIdx.x], sums[which].words + 4 * quad, sizeof(uint4));
        }
      }
    }
    __syncthreads();
#pragma unroll
    for (int at = static_cast<int>(threadIdx.y * kThreads + threadIdx.x); at < 2 * kPacks; at += kChunkThreads) {
      const int which = at / kPacks, pack = at % kPacks;
      A total[kWidth] = {};
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
        Sums sums;
#pragma unroll
        for (int quad = 0; quad < kQuads; ++quad) memcpy(sums.words + 4 * quad, &group_sums[group][which][quad][pack], sizeof(uint4));
#pragma unroll
        for (int i = 0; i < kWidth; ++i) total[i] += sums.get(i);
      }
      store_sums(which, static_cast<std::int64_t>(pack) * kWidth, pack_of<A>(total));
    }
  }
}

// Calls fn with the threads that share a row of so many packs.
template <class Fn>
void with_group(std::int64_t packs, const Fn& fn) {
  if (packs <= kMaxPacks * 32) return fn(std::integral_constant<int, 32>{});
  if (packs <= kMaxPacks * 64) return fn(std::integral_constant<int, 64>{});
  if (packs <= kMaxPacks * 128) return fn(std::integral_constant<int, 128>{});
  fn(std::integral_constant<int, kChunkThreads>{});
}

}  // namespace tilewave
