// A warpgroup's view of attention on Hopper: rows of a head as tiles that TMA brings and wgmma reads either way, sums in
// registers that are the next product's terms, and what 64 rows see. Thread t of warp w holds rows 16 w + t / 4 and 8 below of its
// warpgroup's 64, and of each 8 columns 2 (t % 4) and the next (prim/wgmma.h), so that a lane's rows and columns are tiles.h's.
#pragma once

#include "kernels/cuda/attention/tiles.h"
#include "kernels/cuda/prim/bulk_copy.h"
#include "kernels/cuda/prim/cluster.h"
#include "kernels/cuda/prim/stmatrix.h"
#include "kernels/cuda/prim/tensor_map.h"
#include "kernels/cuda/prim/wgmma_64_columns.h"

namespace tilewave::attention_on_gpu {

constexpr int kWarpgroupRows = 64;

// The warp in its warpgroup.
__device__ __forceinline__ int warp_of_group() { return static_cast<int>(threadIdx.x) % kWarpgroup / kWarp; }

// kRowCount rows of a head: boxes of 64 columns, each with all of the rows.
template <int kRowCount, int kHeadSize>
struct alignas(1024) HeadTile {
  static constexpr int kRows = kRowCount, kColumns = kHeadSize, kBoxes = kHeadSize / kBox;
  static constexpr int kBoxSize = kRows * 128;
  static constexpr unsigned kBytes = kBoxes * kBoxSize;
  static_assert(kRows % kBox == 0 && kHeadSize % kBox == 0, "boxes are made of 64 rows and 64 columns");
  std::byte boxes[kBoxes][kBoxSize];

  // Where 8 columns of a row lie.
  static __device__ __forceinline__ int offset(int row, int chunk) { return chunk / 8 * kBoxSize + row * 128 + 16 * (chunk % 8 ^ row % 8); }
};

// Rows from `row` of the columns from `column`; zero outside the matrix. The map's box has the tile's rows.
template <class Tile>
__device__ __forceinline__ void load_tile(Tile& tile, const CUtensorMap& map, Mbarrier& barrier, int row, int column) {
#pragma unroll
  for (int box = 0; box < Tile::kBoxes; ++box) tma_load(tile.boxes[box], map, barrier, column + box * kBox, row);
}
template <class Tile>
__device__ __forceinline__ void store_tile(const CUtensorMap& map, const Tile& tile, int row, int column) {
#pragma unroll
  for (int box = 0; box < Tile::kBoxes; ++box) tma_store(map, tile.boxes[box], column + box * kBox, row);
}

// A tile as an operand whose K runs along its columns, from column 16 step on.
template <class Tile>
__device__ __forceinline__ std::uint64_t along_columns(const Tile& tile, int step) {
  return operand<Fastest::k>(operand_at(tile.boxes[step / 4]), step % 4);
}
// As an operand whose K runs along its rows, from row 16 step on, and whose other dimension is all of its columns.
template <class Tile>
__device__ __forceinline__ std::uint64_t along_rows(const Tile& tile, int step) {
  constexpr std::uint64_t kFurther = (Tile::kBoxSize - kBoxBytes) / 16;  // from one box to the next than operand() knows
  return operand<Fastest::other>(operand_at(tile.boxes), step) + (kFurther << 16);
}

// 64 rows by 16 of K, in registers.
using WarpgroupTerms = std::uint32_t[4];

// sums = own other^T: 64 rows of own, from `own_row`, by all rows of other.
template <class T, class Own, class Other>
__device__ __forceinline__ void multiply_rows(float (&sums)[Other::kRows / 2], const Own& own, const Other& other) {
#pragma unroll
  for (int step = 0; step < Other::kColumns / 16; ++step) {
    const std::uint64_t rows = along_columns(own, step), cols = along_columns(other, step);
    if constexpr (Other::kRows == 64) {
      wgmma_64_columns<T, Fastest::k, Fastest::k>(sums, rows, cols, step > 0);
    } else {
      wgmma<T, Fastest::k, Fastest::k, Other::kRows>(sums, rows, cols, step > 0);
    }
  }
}
template <class T, class Other>
__device__ __forceinline__ void multiply_rows(float (&sums)[Other::kRows / 2], const WarpgroupTerms (&own)[Other::kColumns / 16],
                                              const Other& other) {
#pragma unroll
  for (int step = 0; step < Other::kColumns / 16; ++step) {
    if constexpr (Other::kRows == 64) {
      wgmma_64_columns<T, Fastest::k>(sums, own[step], along_columns(other, step), step > 0);
    } else {
      wgmma<T, Fastest::k, Other::kRows>(sums, own[step], along_columns(other, step), step > 0);
    }
  }
}

// sums += terms other: 64 rows by all columns of other, whose rows are the terms.
template <class T, class Other>
__device__ __forceinline__ void multiply_columns(float (&sums)[Other::kColumns / 2], const WarpgroupTerms (&terms)[Other::kRows / 16],
                                                 const Other& other) {
#pragma unroll
  for (int step = 0; step < Other::kRows / 16; ++step) {
    if constexpr (Other::kColumns == 64) {
      wgmma_64_columns<T, Fastest::other>(sums, terms[step], along_rows(other, step), true);
    } else {
      wgmma<T, Fastest::other, Other::kColumns>(sums, terms[step], along_rows(other, step), true);
    }
  }
}

// Keeps the compiler from using sums before the wait that stands here in the program.
template <int kCount>
__device__ __forceinline__ void sums_arrive(float (&sums)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(sums[i])::"memory");
}

// Sums of 64 rows as the next product's terms.
template <class T, int kCount>
__device__ __forceinline__ void as_terms(WarpgroupTerms (&terms)[kCount / 8], const float (&sums)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount / 2; ++i) terms[i / 4][i % 4] = pack<T>(sums[2 * i], sums[2 * i + 1]);
}

// A tile's 64 rows, from `row`, as terms.
template <class Tile>
__device__ __forceinline__ void load_terms(WarpgroupTerms (&terms)[Tile::kColumns / 16], const Tile& tile, int row = 0) {
  const int lane_at = row + 16 * warp_of_group() + lane_index() % 16;
#pragma unroll
  for (int step = 0; step < Tile::kColumns / 16; ++step) {
    ldmatrix(terms[step], shared_address(tile.boxes) + Tile::offset(lane_at, 2 * step + lane_index() / 16));
  }
}

// factor[row half] * sums into a tile's 64 rows, from `row`. TMA may read them after fence_proxy_async_shared().
template <class T, class Tile>
__device__ __forceinline__ void stage_rows(Tile& tile, int row, const float (&sums)[Tile::kColumns / 2], const float (&factor)[2]) {
  const int lane_at = row + 16 * warp_of_group() + lane_index() % 16;
  std::byte* const bytes = tile.boxes[0];
#pragma unroll
  for (int i = 0; i < Tile::kColumns / 16; ++i) {
    const float* s = sums + 8 * i;
    store_matrices(bytes + Tile::offset(lane_at, 2 * i + lane_index() / 16), pack<T>(s[0] * factor[0], s[1] * factor[0]),
                   pack<T>(s[2] * factor[1], s[3] * factor[1]), pack<T>(s[4] * factor[0], s[5] * factor[0]),
                   pack<T>(s[6] * factor[1], s[7] * factor[1]));
  }
}

// What the rows of a window see, each row's, and each warpgroup's 64 together, in shared memory. A warp publishes it, one row a lane
// at a time; a row that sees nothing is Span::nothing().
template <int kWarpgroups>
struct WindowSpans {
  Span rows[kWarpgroups * kWarpgroupRows];
  Span any[kWarpgroups], all[kWarpgroups];

  // Returns what any row of the window sees.
  __device__ __forceinline__ Span publish(const Span* spans, std::int64_t first_row, std::int64_t row_count) {
    Span seen = Span::nothing();
#pragma unroll
    for (int group = 0; group < kWarpgroups; ++group) {
      Span any_row = Span::nothing(), all_rows{0, INT_MAX};
#pragma unroll
      for (int half = 0; half < kWarpgroupRows / kWarp; ++half) {
        const int at = group * kWarpgroupRows + half * kWarp + lane_index();
        Span span = first_row + at < row_count ? spans[first_row + at] : Span::nothing();
        if (span.first >= span.end) span = Span::nothing();
        rows[at] = span;
        any_row = {.first = min(any_row.first, span.first), .end = max(any_row.end, span.end)};
        all_rows = {.first = max(all_rows.first, span.first), .end = min(all_rows.end, span.end)};
      }
      any_row = {.first = __reduce_min_sync(~0u, any_row.first), .end = __reduce_max_sync(~0u, any_row.end)};
      all_rows = {.first = __reduce_max_sync(~0u, all_rows.first), .end = __reduce_min_sync(~0u, all_rows.end)};
      if (lane_index() == 0) any[group] = any_row, all[group] = all_rows;
      seen = {.first = min(seen.first, any_row.first), .end = max(seen.end, any_row.end)};
    }
    return seen;
  }

  // A lane's part of a warpgroup's.
  __device__ __forceinline__ WarpSpans<1> of(int group) const {
    const int row = group * kWarpgroupRows + 16 * warp_of_group() + lane_row();
    WarpSpans<1> spans;
    spans.of[0][0] = rows[row], spans.of[0][1] = rows[row + 8];
    spans.any = any[group], spans.all = all[group];
    return spans;
  }
};

// Scores of what a row does not see become -infinity.
template <int kCount>
__device__ __forceinline__ void hide_unseen(float (&scores)[kCount], const WarpSpans<1>& spans, int first) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    if (!spans.of[0][i / 2 % 2].holds(first + i / 4 * 8 + lane_column() + i % 2)) scores[i] = -INFINITY;
  }
}

}  // namespace tilewave::attention_on_gpu
