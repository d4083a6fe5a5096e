// Fewer than eight columns of D: a warp reads four rows of B, and A's few rows beside them, and adds up its lanes' sums. That takes as long
// as reading B.
#include "kernels/cuda/core/pairs.h"
#include "kernels/cuda/core/stream.h"
#include "kernels/cuda/gemm/factor.h"
#include "kernels/cuda/gemm/sm90/last_columns.h"
#include "kernels/cuda/prim/check.h"

namespace tilewave {
namespace {

constexpr int kWarps = 8, kRowsOfWarp = 4, kMaxColumns = 7, kRun = 8;  // kRun: elements that a lane reads at a time

struct LastColumns {
  const void *a = nullptr, *b = nullptr;  // [columns, K] and [rows, K]
  std::int64_t a_ld = 0, b_ld = 0, d_ld = 0, k = 0;
  void* d = nullptr;  // [rows, columns]
  Factor alpha;
  int columns = 0;
  std::int64_t rows = 0;
};

template <class T>
__device__ __forceinline__ float dot(const uint4& left, const uint4& right, float sum) {
  const unsigned a[] = {left.x, left.y, left.z, left.w}, b[] = {right.x, right.y, right.z, right.w};
#pragma unroll
  for (int i = 0; i < kRun / 2; ++i) {
    const float2 one = unpack<T>(a[i]), other = unpack<T>(b[i]);
    sum += one.x * other.x;
    sum += one.y * other.y;
  }
  return sum;
}

template <class T>
__global__ void __launch_bounds__(kWarps * 32) last_columns(const LastColumns p) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const std::int64_t first = (std::int64_t{blockIdx.x} * kWarps + threadIdx.x / 32) * kRowsOfWarp;
  const auto row_of_b = [&](int row) { return static_cast<const T*>(p.b) + min(first + row, p.rows - 1) * p.b_ld; };
  const auto row_of_a = [&](int column) { return static_cast<const T*>(p.a) + column * p.a_ld; };
  float sums[kRowsOfWarp][kMaxColumns] = {};

  // Whole words, all of a step's asked for at once, and what of K is left.
  const std::int64_t words_end = p.k / kRun * kRun;
  for (std::int64_t k = lane * kRun; k < words_end; k += 32 * kRun) {
    uint4 b[kRowsOfWarp], a[kMaxColumns];
#pragma unroll
    for (int row = 0; row < kRowsOfWarp; ++row) b[row] = *reinterpret_cast<const uint4*>(row_of_b(row) + k);
#pragma unroll
    for (int column = 0; column < kMaxColumns; ++column) {
      if (column < p.columns) a[column] = *reinterpret_cast<const uint4*>(row_of_a(column) + k);
    }
#pragma unroll
    for (int column = 0; column < kMaxColumns; ++column) {
      if (column >= p.columns) continue;
#pragma unroll
      for (int row = 0; row < kRowsOfWarp; ++row) sums[row][column] = dot<T>(a[column], b[row], sums[row][column]);
    }
  }
  if (words_end + lane < p.k) {
#pragma unroll
    for (int column = 0; column < kMaxColumns; ++column) {
      if (column >= p.columns) continue;
#pragma unroll
      for (int row = 0; row < kRowsOfWarp; ++row) {
        sums[row][column] += load(row_of_a(column)[words_end + lane]) * load(row_of_b(row)[words_end + lane]);
      }
    }
  }

  const auto alpha = p.alpha.load<float>();
#pragma unroll
  for (int row = 0; row < kRowsOfWarp; ++row) {
#pragma unroll
    for (int column = 0; column < kMaxColumns; ++column) {
      float sum = sums[row][column];
#pragma unroll
      for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, distance);
      if (lane == column && column < p.columns && first + row < p.rows) {
        static_cast<T*>(p.d)[(first + row) * p.d_ld + column] = store<T>(sum * alpha);
      }
    }
  }
}

}  // namespace

// Of forward's majors and no epilogue.
void launch_last_columns(CudaQueue& queue, const GemmArgs& args, std::int64_t columns) {
  const std::int64_t from = args.a.rows - columns, size = size_of(args.a.dtype);
  const auto at = [&](const void* data, std::int64_t elements) { return static_cast<const std::byte*>(data) + elements * size; };
  const LastColumns p = {.a = at(args.a.data, from * args.a.ld),
                         .b = args.b.data,
                         .a_ld = args.a.ld,
                         .b_ld = args.b.ld,
                         .d_ld = args.d.ld,
                         .k = args.a.cols,
                         .d = const_cast<std::byte*>(at(args.d.data, from)),
                         .alpha = Factor::of(args.alpha),
                         .columns = static_cast<int>(columns),
                         .rows = args.b.rows};
  const auto blocks = static_cast<unsigned>(ceil_div(p.rows, std::int64_t{kWarps * kRowsOfWarp}));
  with_half(args.a.dtype, "gemm, the last columns of D",
            [&]<class T>(T) { last_columns<T><<<blocks, kWarps * 32, 0, stream_of(queue)>>>(p); });
  TW_CUDA_LAUNCHED("gemm, the last columns of D");
}

}  // namespace tilewave
