// A warp's view of attention on Tensor Cores: rows of 16-bit elements in shared memory, fragments of them, and the spans and
// draws of the rows and columns that a lane's accumulators stand for. Lane 4 g + q holds rows g and g + 8 and columns 2 q and
// 2 q + 1 of each 16 x 8 accumulator (PTX ISA, mma.m16n8k16).
#pragma once

#include <cstddef>

#include "kernels/cuda/attention/launch.h"
#include "kernels/cuda/core/pairs.h"
#include "kernels/cuda/prim/cp_async.h"
#include "kernels/cuda/prim/mma.h"

namespace tilewave::attention_on_gpu {

constexpr int kWarp = 32, kWarps = 4, kThreads = kWarp * kWarps;
constexpr float kLog2E = 1.44269504f;

__device__ __forceinline__ int lane_index() { return static_cast<int>(threadIdx.x) % kWarp; }
__device__ __forceinline__ int warp_index() { return static_cast<int>(threadIdx.x) / kWarp; }
__device__ __forceinline__ int lane_row() { return lane_index() / 4; }
__device__ __forceinline__ int lane_column() { return lane_index() % 4 * 2; }

// A row's 16-byte chunks are permuted by the row, so that a column of chunks of eight rows lies in all 32 banks.
template <int kRowCount, int kColumns>
struct alignas(2 * kColumns < 128 ? 128 : 2 * kColumns) SharedRows {
  static constexpr int kRows = kRowCount, kChunks = kColumns / 8, kRowBytes = 2 * kColumns;
  std::byte bytes[kRows * kRowBytes];

  static __device__ __forceinline__ int offset(int row, int chunk) {
    constexpr int kPermuted = kChunks < 8 ? kChunks : 8;
    return row * kRowBytes + 16 * (chunk ^ (row / (8 / kPermuted) % kPermuted));
  }
};

// Where a lane points ldmatrix: a row and chunk of its own within a fragment, whose place at() adds.
template <class Tile>
struct LanePointer {
  std::uint32_t tile = 0, lane = 0;

  // Sixteen rows by sixteen columns, or transposed sixteen terms by two times eight columns.
  static __device__ __forceinline__ LanePointer along_rows(const Tile& tile) {
    return {shared_address(tile.bytes), static_cast<std::uint32_t>(Tile::offset(lane_index() % 16, lane_index() / 16))};
  }
  // Two times eight rows by sixteen terms.
  static __device__ __forceinline__ LanePointer along_terms(const Tile& tile) {
    return {shared_address(tile.bytes),
            static_cast<std::uint32_t>(Tile::offset(lane_index() % 8 + lane_index() / 16 * 8, lane_index() / 8 % 2))};
  }
  // Rows are multiples of 8 and columns of 16, so that neither changes how the other permutes.
  __device__ __forceinline__ std::uint32_t at(int row, int column) const { return tile + (lane ^ (2 * column)) + row * Tile::kRowBytes; }
};

// Whether rows can be moved 16 bytes at a time.
template <class T>
bool moves_16_bytes(const Rows<T>& rows) {
  return reinterpret_cast<std::uintptr_t>(rows.data) % 16 == 0 && rows.ld % 8 == 0;
}
enum class RowAccess { wide, narrow };

// Rows from `first` and columns from `column` on their way; zero outside the span.
template <class Tile, class T>
__device__ __forceinline__ void load_rows(Tile& tile, const Rows<const T>& rows, int first, Span inside, int column, RowAccess access) {
  const std::uint32_t address = shared_address(tile.bytes);
#pragma unroll
  for (int i = 0; i < Tile::kRows * Tile::kChunks / kThreads; ++i) {
    const int row = static_cast<int>(threadIdx.x) / Tile::kChunks + i * (kThreads / Tile::kChunks);
    const int chunk = static_cast<int>(threadIdx.x) % Tile::kChunks;
    const bool present = inside.holds(first + row);
    const T* source = rows.row(present ? first + row : inside.first) + column + 8 * chunk;
    const int offset = Tile::offset(row, chunk);
    if (access == RowAccess::wide) {
      cp_async<16>(address + offset, source, present ? 16 : 0);
    } else {
      T* target = reinterpret_cast<T*>(tile.bytes + offset);
      for (int c = 0; c < 8; ++c) target[c] = present ? source[c] : T{};
    }
  }
}

// A warp's rows of a tile, kRows of them from `row`, to rows from `first` of the matrix.
template <int kRows, class Tile, class T>
__device__ __forceinline__ void store_rows(const Tile& tile, int row, const Rows<T>& rows, std::int64_t first, int column,
                                           RowAccess access) {
#pragma unroll
  for (int i = 0; i < kRows * Tile::kChunks / kWarp; ++i) {
    const int at = lane_index() + i * kWarp, r = row + at / Tile::kChunks, chunk = at % Tile::kChunks;
    if (first + r >= rows.rows) continue;
    const std::byte* source = tile.bytes + Tile::offset(r, chunk);
    T* target = rows.row(first + r) + column + 8 * chunk;
    if (access == RowAccess::wide) {
      *reinterpret_cast<uint4*>(target) = *reinterpret_cast<const uint4*>(source);
    } else {
      for (int c = 0; c < 8; ++c) target[c] = reinterpret_cast<const T*>(source)[c];
    }
  }
}

// 2^x to 2 ulp, zero where that is subnormal.
__device__ __forceinline__ float exp2_of(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ __forceinline__ float quad_sum(float x) {
  x += __shfl_xor_sync(~0u, x, 1);
  return x + __shfl_xor_sync(~0u, x, 2);
}
__device__ __forceinline__ float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
  return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}

template <int kM, int kN>
using Sums = float[kM][kN][4];  // of kM x 16 rows and kN x 8 columns
template <int kM>
using Terms = std::uint32_t[kM][4];  // kM x 16 rows, 16 terms

// sums += a b^T, b's rows being the columns: 16 terms from `column`, rows from `row`.
template <class T, int kM, int kN, class Tile>
__device__ __forceinline__ void multiply_rows(Sums<kM, kN>& sums, const Terms<kM>& a, const LanePointer<Tile>& b, int row, int column) {
#pragma unroll
  for (int n = 0; n < kN; n += 2) {
    std::uint32_t terms[4];
    ldmatrix(terms, b.at(row + 8 * n, column));
#pragma unroll
    for (int m = 0; m < kM; ++m) {
      mma<T>(sums[m][n], a[m], terms[0], terms[1]);
      mma<T>(sums[m][n + 1], a[m], terms[2], terms[3]);
    }
  }
}

// sums += a b, b's rows being the terms: 16 of them from `row`.
template <class T, int kM, int kN, class Tile>
__device__ __forceinline__ void multiply_columns(Sums<kM, kN>& sums, const Terms<kM>& a, const LanePointer<Tile>& b, int row) {
#pragma unroll
  for (int n = 0; n < kN; n += 2) {
    std::uint32_t terms[4];
    ldmatrix_transposed(terms, b.at(row, 8 * n));
#pragma unroll
    for (int m = 0; m < kM; ++m) {
      mma<T>(sums[m][n], a[m], terms[0], terms[1]);
      mma<T>(sums[m][n + 1], a[m], terms[2], terms[3]);
    }
  }
}

// Accumulators 2 k and 2 k + 1 as terms of the next product.
template <class T, int kM, int kN>
__device__ __forceinline__ void as_terms(Terms<kM>& terms, const Sums<kM, kN>& sums, int k) {
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int i = 0; i < 4; ++i) terms[m][i] = pack<T>(sums[m][2 * k + i / 2][i % 2 * 2], sums[m][2 * k + i / 2][i % 2 * 2 + 1]);
  }
}

// factor[row half] * sums into a warp's rows of a tile.
template <class T, int kM, int kN, class Tile>
__device__ __forceinline__ void stage_rows(Tile& tile, int row, const Sums<kM, kN>& sums, const float (&factor)[kM][2]) {
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int n = 0; n < kN; ++n) {
        std::byte* target = tile.bytes + Tile::offset(row + 16 * m + 8 * half + lane_row(), n) + 2 * lane_column();
        *reinterpret_cast<std::uint32_t*>(target) =
            pack<T>(sums[m][n][2 * half] * factor[m][half], sums[m][n][2 * half + 1] * factor[m][half]);
      }
    }
  }
}

// What a lane's rows see; what any row of the warp sees; what all of them see.
template <int kM>
struct WarpSpans {
  Span of[kM][2];
  Span any, all;

  __device__ __forceinline__ bool none_sees(int first, int end) const { return end <= any.first || first >= any.end; }
  __device__ __forceinline__ bool all_see(int first, int end) const { return first >= all.first && end <= all.end; }
};

template <int kM>
__device__ __forceinline__ WarpSpans<kM> load_spans(const Span* spans, std::int64_t first_row, std::int64_t rows) {
  WarpSpans<kM> result;
  Span any = Span::nothing(), all{0, INT_MAX};
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::int64_t row = first_row + 16 * m + 8 * half + lane_row();
      Span span = row < rows ? spans[row] : Span::nothing();
      if (span.first >= span.end) span = Span::nothing();
      result.of[m][half] = span;
      any = {.first = min(any.first, span.first), .end = max(any.end, span.end)};
      all = {.first = max(all.first, span.first), .end = min(all.end, span.end)};
    }
  }
  result.any = {.first = __reduce_min_sync(~0u, any.first), .end = __reduce_max_sync(~0u, any.end)};
  result.all = {.first = __reduce_max_sync(~0u, all.first), .end = __reduce_min_sync(~0u, all.end)};
  return result;
}

// Scores of what a row does not see become -infinity.
template <int kM, int kN>
__device__ __forceinline__ void hide_unseen(Sums<kM, kN>& scores, const WarpSpans<kM>& spans, int first) {
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int n = 0; n < kN; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (!spans.of[m][i / 2].holds(first + 8 * n + lane_column() + i % 2)) scores[m][n][i] = -INFINITY;
      }
    }
  }
}

// What any row of the block sees. `shared` has a place for each warp; ends with a barrier.
__device__ __forceinline__ Span block_span(Span any, Span (&shared)[kWarps]) {
  if (lane_index() == 0) shared[warp_index()] = any;
  __syncthreads();
  Span span = shared[0];
  for (int warp = 1; warp < kWarps; ++warp) {
    span = {.first = min(span.first, shared[warp].first), .end = max(span.end, shared[warp].end)};
  }
  return span;
}

__device__ __forceinline__ std::uint32_t word_of(const PhiloxCounter& words, int index) {
  const std::uint32_t low = index % 2 == 0 ? words[0] : words[1], high = index % 2 == 0 ? words[2] : words[3];
  return index / 2 == 0 ? low : high;
}

// Which of an accumulator's four elements are kept: its draws are four times four keys of one query, a quad to a lane, exchanged
// among the lanes that need them. `row` and `column` are the accumulator's first, the key of the two a multiple of 4.
template <AttentionSide rows>
__device__ __forceinline__ void draw_kept(bool (&kept)[4], const Dropout& dropout, const DrawKey& draws, unsigned head, int row,
                                          int column) {
  const auto draw = [&](int query, int quad) { return draws(static_cast<std::uint32_t>(query), static_cast<std::uint32_t>(quad), head); };
  if constexpr (rows == AttentionSide::queries) {
    // Two lanes share two quads: row g's is drawn by the even one, row g + 8's by the odd one, and each has use for half of both.
    const bool odd = lane_index() % 2 != 0;
    const PhiloxCounter mine = draw(row + lane_row() + (odd ? 8 : 0), column / 4 + lane_column() / 4);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const std::uint32_t keep = odd ? mine[2 + i] : mine[i];
      const std::uint32_t other = __shfl_xor_sync(~0u, odd ? mine[i] : mine[2 + i], 1);
      kept[i] = keeps(odd ? other : keep, dropout.threshold);
      kept[2 + i] = keeps(odd ? keep : other, dropout.threshold);
    }
  } else {
    // Four lanes whose keys are one quad share four: quads g / 4 and g / 4 + 2 of two queries. Each draws one, then they transpose.
    const int index = lane_row() % 4;
    const PhiloxCounter mine = draw(column + lane_column() + index % 2, (row + lane_row()) / 4 + index / 2 * 2);
    PhiloxCounter exchanged;
#pragma unroll
    for (int i = 0; i < 4; ++i) exchanged[i] = __shfl_xor_sync(~0u, word_of(mine, index ^ i), 4 * i);
#pragma unroll
    for (int i = 0; i < 4; ++i) kept[i] = keeps(word_of(exchanged, index ^ i), dropout.threshold);
  }
}

// Calls fn with what Tensor Cores take: an element type and a head size.
template <class T, int kHeadSize>
struct Head {};
template <class Fn>
void with_head(DType dtype, std::int64_t head_size, Fn&& fn) {
  const auto with_size = [&]<class T>(T) {
    if (head_size == 32) return fn(Head<T, 32>{});
    if (head_size == 64) return fn(Head<T, 64>{});
    TW_CHECK(head_size == 128, "attention: Tensor Cores take heads of 32, 64 or 128 columns, not ", head_size, ".");
    fn(Head<T, 128>{});
  };
  with_half(dtype, "attention", with_size);
}

}  // namespace tilewave::attention_on_gpu
