// A matrix across K on Tensor Cores. MMAs want pairs along K and memory has pairs along rows: of two steps of K a lane has the same rows,
// so two byte permutations make two pairs of two. Which row of the matrix is which row of an MMA is free: rows g and g + 8 of MMA i are
// those that lane 4 g + q has at 2 i and 2 i + 1 in its words. CTAs and their warps share K; sums of the matrix over K are a vector of
// ones, and those of vectors a row of ones.
#include "kernels/cuda/gemm/gemv/lines.h"
#include "kernels/cuda/prim/mma.h"
#include "kernels/gemm/gemv/gemv_axpy_mma.h"

namespace tilewave {
namespace {

constexpr int kRows = kGemvAxpyMmaRows, kDepth = kGemvAxpyMmaDepth;
constexpr int kMmas = 4;  // along the rows of a warp, 16 each

__device__ __forceinline__ unsigned component(const uint4& word, int i) {
  return i == 0 ? word.x : i == 1 ? word.y : i == 2 ? word.z : word.w;
}

// kColumns: 8 or 16.
template <class T, int kColumns, bool kShifted, bool kGathered>
__global__ void __launch_bounds__(kGemvThreads, 2) gemv_axpy_mma(const __grid_constant__ GemvProblem<float> p) {
  constexpr int kTiles = kColumns / 8, kAtOnce = kShifted ? 4 : 8;  // steps of K
  using Vector = VectorOfWords<T, kShifted, kGathered>;
  __shared__ float sums[gemv_sums(kRows, kColumns)], vector_sums[kGemvWarps][kMaxVectors];
  const GemvWarps warps = gemv_warps(p.tile_rows, kRows);
  const GemvWarp warp(warps, kRows);
  const int g = warp.lane / 4, q = warp.lane % 4;
  const int begin = static_cast<int>(blockIdx.y) * p.part_depth, end = min(begin + p.part_depth, p.depth);
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * p.tile_rows + warp.first_row + 8 * g;
  const bool sums_vectors = p.sum_vectors && blockIdx.x == 0 && warp.first_row == 0;

  // Vectors past the last are read as the last one, and not stored.
  const auto vector_of = [&](int index) {
    return Vector(static_cast<const T*>(p.vectors.data) + min(index, p.vector_count - 1) * p.vectors.across, p.vectors.along);
  };
  const Vector vectors[2] = {vector_of(g), vector_of(g + 8)};
  float acc[kMmas][kTiles][4] = {}, of_vectors[kTiles][4] = {};

  for (int k = begin + warp.along_k * kDepth; k < end; k += warps.along_k * kDepth) {
    const int at = k + 8 * q;
    uint4 few[kTiles];
#pragma unroll
    for (int half = 0; half < 8 / kAtOnce; ++half) {
      uint4 lines[kAtOnce];
      load_lines<T, kShifted>(p, first, at + half * kAtOnce, end, lines);
      if (half == 0) {
#pragma unroll
        for (int tile = 0; tile < kTiles; ++tile) {
          if (at < p.words_end) {
            uint4 loaded[Vector::kLoads];
            vectors[tile].load(at / 8, at < end, loaded);
            few[tile] = vectors[tile].word(loaded);
          } else {
            few[tile] = vectors[tile].rest(at, end);
          }
          if (p.sum_matrix && 8 * tile + g == p.vector_count) few[tile] = make_uint4(ones<T>(), ones<T>(), ones<T>(), ones<T>());
        }
      }
#pragma unroll
      for (int quarter = 0; quarter < kAtOnce / 4; ++quarter) {  // four steps of K of each q: an MMA's sixteen
        const uint4* const four = lines + 4 * quarter;
        const bool upper = half + quarter > 0;
#pragma unroll
        for (int tile = 0; tile < kTiles; ++tile) {
          const unsigned low = upper ? few[tile].z : few[tile].x, high = upper ? few[tile].w : few[tile].y;
#pragma unroll
          for (int i = 0; i < kMmas; ++i) {
            const unsigned w[] = {component(four[0], i), component(four[1], i), component(four[2], i), component(four[3], i)};
            mma<T>(acc[i][tile],
                   {__byte_perm(w[0], w[1], 0x5410), __byte_perm(w[0], w[1], 0x7632), __byte_perm(w[2], w[3], 0x5410),
                    __byte_perm(w[2], w[3], 0x7632)},
                   low, high);
          }
          if (sums_vectors) mma<T>(of_vectors[tile], {ones<T>(), ones<T>(), ones<T>(), ones<T>()}, low, high);
        }
      }
    }
  }

  float* const mine = sums + warp.along_k * kColumns * p.tile_rows + warp.first_row + 8 * g;
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
    for (int i = 0; i < kMmas; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) mine[(8 * tile + 2 * q + j % 2) * p.tile_rows + 2 * i + j / 2] = acc[i][tile][j];
    }
    if (sums_vectors && g == 0) {
      vector_sums[warp.along_k][8 * tile + 2 * q] = of_vectors[tile][0];
      vector_sums[warp.along_k][8 * tile + 2 * q + 1] = of_vectors[tile][1];
    }
  }
  finish_gemv(p, {.of_tile = sums, .slices = warps.along_k, .columns = kColumns, .of_vectors = vector_sums[0]});
}

}  // namespace

void launch_gemv_axpy_mma(CudaQueue& queue, const GemmCall& call) {
  const dim3 grid(static_cast<unsigned>(call.plan.tiling.tiles), static_cast<unsigned>(call.plan.split));
  with_half(call.args.a.dtype, "gemm", [&]<class T>(T) {
    with_gemv_layout(call, [&]<bool kShifted, bool kGathered>(std::bool_constant<kShifted>, std::bool_constant<kGathered>) {
      const GemvProblem<float> problem = gemv_problem_of<T>(queue, call, kShifted);
      const bool eight = gemv_axpy_mma_columns(problem.vector_count, problem.sum_matrix) == 8;
      auto* const kernel = eight ? gemv_axpy_mma<T, 8, kShifted, kGathered> : gemv_axpy_mma<T, 16, kShifted, kGathered>;
      kernel<<<grid, kGemvThreads, 0, stream_of(queue)>>>(problem);
      TW_CUDA_LAUNCHED("gemm gemv_axpy_mma");
    });
  });
}

}  // namespace tilewave
