// A matrix across K on CUDA cores: a lane has the sums of a word's rows and all vectors, and as K goes on adds to them. Four lanes of a
// warp have the same rows at other steps of K, so that each line of memory is read whole; CTAs and their warps share K as well.
#include "kernels/cuda/gemm/gemv/lines.h"
#include "kernels/gemm/gemv/gemv_axpy.h"

namespace tilewave {
namespace {

constexpr int kDepth = kGemvAxpyDepth;

template <class T, int kColumns, bool kShifted, bool kGathered>
__global__ void __launch_bounds__(kGemvThreads, 2) gemv_axpy(const __grid_constant__ GemvProblem<T> p) {
  constexpr int kWord = kWordElements<T>, kRows = kGemvLineLanes * kWord;
  constexpr int kAtOnce = gemv_axpy_steps(kColumns, kShifted), kSumColumns = kColumns + 1;  // the last has the matrix's own sums
  using Vector = VectorOfWords<T, kShifted, kGathered>;
  __shared__ T sums[gemv_sums(kRows, kSumColumns)], vector_sums[kGemvWarps][kMaxVectors];
  const GemvWarps warps = gemv_warps(p.tile_rows, kRows);
  const GemvWarp warp(warps, kRows);
  const int g = warp.lane % kGemvLineLanes, q = warp.lane / kGemvLineLanes;
  const int begin = static_cast<int>(blockIdx.y) * p.part_depth, end = min(begin + p.part_depth, p.depth);
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * p.tile_rows + warp.first_row + kWord * g;
  const bool sums_vectors = p.sum_vectors && blockIdx.x == 0 && warp.first_row == 0;

  T acc[kColumns][kWord] = {}, of_vectors[kColumns] = {}, of_matrix[kWord] = {};
  for (int k = begin + warp.along_k * kDepth; k < end; k += warps.along_k * kDepth) {
#pragma unroll
    for (int half = 0; half < 8 / kAtOnce; ++half) {
      const int at = k + 8 * q + half * kAtOnce;
      uint4 lines[kAtOnce];
      load_lines<T, kShifted>(p, first, at, end, lines);
      // Vector by vector; those past the last are read as the last one, and not stored.
      const T* address = hidden(static_cast<const T*>(p.vectors.data)) + at * p.vectors.along;
#pragma unroll
      for (int column = 0; column < kColumns; ++column) {
        const Vector vector(address, p.vectors.along);
#pragma unroll
        for (int word = 0; word < kAtOnce / kWord; ++word) {
          uint4 few;
          if (at + word * kWord < p.words_end) {
            uint4 loaded[Vector::kLoads];
            vector.load(word, at + word * kWord < end, loaded);
            few = vector.word(loaded);
          } else {
            few = vector.rest(word * kWord, end - at);
          }
          const auto x = std::bit_cast<WordElements<T>>(few);
#pragma unroll
          for (int i = 0; i < kWord; ++i) {
            const auto line = std::bit_cast<WordElements<T>>(lines[word * kWord + i]);
#pragma unroll
            for (int row = 0; row < kWord; ++row) acc[column][row] += line.at[row] * x.at[i];
            if (sums_vectors) of_vectors[column] += x.at[i];
          }
        }
        if (column + 1 < p.vector_count) address += p.vectors.across;
      }
      if (p.sum_matrix) {
#pragma unroll
        for (int step = 0; step < kAtOnce; ++step) {
          const auto line = std::bit_cast<WordElements<T>>(lines[step]);
#pragma unroll
          for (int row = 0; row < kWord; ++row) of_matrix[row] += line.at[row];
        }
      }
    }
  }

  // The lanes with the same rows, then the warps.
  const auto over_lanes = [](T sum) {
    sum += __shfl_xor_sync(~0u, sum, kGemvLineLanes);
    return sum + __shfl_xor_sync(~0u, sum, 2 * kGemvLineLanes);
  };
  T* const mine = sums + warp.along_k * kSumColumns * p.tile_rows + warp.first_row + kWord * g;
#pragma unroll
  for (int column = 0; column < kColumns; ++column) {
#pragma unroll
    for (int row = 0; row < kWord; ++row) {
      const T sum = over_lanes(acc[column][row]);
      if (q == 0 && column < p.vector_count) mine[column * p.tile_rows + row] = sum;
    }
    const T sum = over_lanes(of_vectors[column]);
    if (sums_vectors && warp.lane == 0 && column < p.vector_count) vector_sums[warp.along_k][column] = sum;
  }
#pragma unroll
  for (int row = 0; row < kWord; ++row) {
    const T sum = over_lanes(of_matrix[row]);
    if (p.sum_matrix && q == 0) mine[p.vector_count * p.tile_rows + row] = sum;
  }
  finish_gemv(p, {.of_tile = sums, .slices = warps.along_k, .columns = kSumColumns, .of_vectors = vector_sums[0]});
}

}  // namespace

void launch_gemv_axpy(CudaQueue& queue, const GemmCall& call) {
  const dim3 grid(static_cast<unsigned>(call.plan.tiling.tiles), static_cast<unsigned>(call.plan.split));
  const auto launch = [&]<class T>(T) {
    with_gemv_layout(call, [&]<bool kShifted, bool kGathered>(std::bool_constant<kShifted>, std::bool_constant<kGathered>) {
      const GemvProblem<T> problem = gemv_problem_of<T>(queue, call, kShifted);
      const int columns = gemv_axpy_columns(problem.vector_count);
      auto* const kernel = columns == 1   ? gemv_axpy<T, 1, kShifted, kGathered>
                           : columns == 4 ? gemv_axpy<T, 4, kShifted, kGathered>
                           : columns == 8 ? gemv_axpy<T, 8, kShifted, kGathered>
                                          : gemv_axpy<T, 16, kShifted, kGathered>;
      kernel<<<grid, kGemvThreads, 0, stream_of(queue)>>>(problem);
      TW_CUDA_LAUNCHED("gemm gemv_axpy");
    });
  };
  call.args.a.dtype == DType::f64 ? launch(double{}) : launch(float{});
}

}  // namespace tilewave
