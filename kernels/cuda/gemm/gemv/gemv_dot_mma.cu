// Adds to gemv_dot, for 16 bits: Tensor Cores multiply. A lane's words of a row go into MMAs as they come from memory, since in what order
// K is summed is free as long as matrix and vectors agree: of 32 elements of K lane 4 g + q has eight, 8 q and on, of rows g and g + 8, and
// its word of vector g has the same. So nothing is staged, converted or exchanged, and sixteen vectors cost no more than one.
#include "kernels/cuda/gemm/gemv/gemv.h"
#include "kernels/cuda/prim/mma.h"
#include "kernels/gemm/gemv/gemv_dot_mma.h"

namespace tilewave {
namespace {

constexpr int kRows = kGemvDotMmaRows, kDepth = kGemvDotMmaDepth;

// kColumns: 8 or 16.
template <class T, int kColumns, bool kShifted, bool kGathered>
__global__ void __launch_bounds__(kGemvThreads, gemv_dot_mma_ctas(kColumns)) gemv_dot_mma(const __grid_constant__ GemvProblem<float> p) {
  constexpr int kSteps = kShifted || kGathered ? kGemvDotMmaSteps / 2 : kGemvDotMmaSteps, kTiles = kColumns / 8, kWord = kWordElements<T>;
  static_assert(4 * kWord == kDepth);
  using Row = RowOfWords<T, kShifted>;
  using Vector = VectorOfWords<T, kShifted, kGathered>;
  __shared__ float sums[gemv_sums(kRows, kColumns)];
  const GemvWarps warps = gemv_warps(p.tile_rows, kRows);
  const GemvWarp warp(warps, kRows);
  const int g = warp.lane / 4, q = warp.lane % 4;
  const int begin = static_cast<int>(blockIdx.y) * p.part_depth, end = min(begin + p.part_depth, p.words_end);

  // Rows and vectors past the last are read as the last one, and not stored.
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * p.tile_rows + warp.first_row + g;
  const auto row_of = [&](std::int64_t index) {
    return Row(static_cast<const T*>(p.matrix.data) + min(index, p.rows - 1) * p.matrix.across);
  };
  const Row rows[2] = {row_of(first), row_of(first + 8)};
  const auto vector_of = [&](int index) {
    return Vector(static_cast<const T*>(p.vectors.data) + min(index, p.vector_count - 1) * p.vectors.across, p.vectors.along);
  };
  const Vector vectors[2] = {vector_of(g), vector_of(g + 8)};

  float acc[kTiles][4] = {};
  const auto multiply = [&](const uint4& upper, const uint4& lower, const uint4& vector, float(&sum)[4]) {
    mma<T>(sum, {upper.x, lower.x, upper.y, lower.y}, vector.x, vector.y);
    mma<T>(sum, {upper.z, lower.z, upper.w, lower.w}, vector.z, vector.w);
  };

  // What no word holds, one by one: asked for first, by the warps with least to do.
  if (warp.along_k == warps.along_k - 1 && p.words_end < p.depth && begin <= p.words_end && p.words_end < begin + p.part_depth) {
    const int k = p.words_end + q * kWord;
    const uint4 upper = rows[0].rest(k, p.depth), lower = rows[1].rest(k, p.depth);
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) multiply(upper, lower, vectors[tile].rest(k, p.depth), acc[tile]);
  }

  // Main loop: all that a lane asks for, then all that it multiplies.
  for (int k = begin + warp.along_k * kSteps * kDepth; k < end; k += warps.along_k * kSteps * kDepth) {
    uint4 matrix[kSteps][2][Row::kLoads], few[kSteps][kTiles][Vector::kLoads];
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const int at = k + step * kDepth + q * kWord;
#pragma unroll
      for (int half = 0; half < 2; ++half) rows[half].template load<true>(at / kWord, at < end, matrix[step][half]);
    }
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const int at = k + step * kDepth + q * kWord;
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) vectors[tile].load(at / kWord, at < end, few[step][tile]);
    }
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const uint4 upper = rows[0].word(matrix[step][0]), lower = rows[1].word(matrix[step][1]);
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) multiply(upper, lower, vectors[tile].word(few[step][tile]), acc[tile]);
    }
  }

  float* const mine = sums + warp.along_k * kColumns * p.tile_rows + warp.first_row + g;
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
    for (int i = 0; i < 4; ++i) mine[(8 * tile + 2 * q + i % 2) * p.tile_rows + i / 2 * 8] = acc[tile][i];
  }
  finish_gemv(p, {.of_tile = sums, .slices = warps.along_k, .columns = kColumns});
}

}  // namespace

void launch_gemv_dot_mma(CudaQueue& queue, const GemmCall& call) {
  const dim3 grid(static_cast<unsigned>(call.plan.tiling.tiles), static_cast<unsigned>(call.plan.split));
  with_half(call.args.a.dtype, "gemm", [&]<class T>(T) {
    with_gemv_layout(call, [&]<bool kShifted, bool kGathered>(std::bool_constant<kShifted>, std::bool_constant<kGathered>) {
      const GemvProblem<float> problem = gemv_problem_of<T>(queue, call, kShifted);
      auto* const kernel = gemv_dot_mma_columns(problem.vector_count) == 8 ? gemv_dot_mma<T, 8, kShifted, kGathered>
                                                                           : gemv_dot_mma<T, 16, kShifted, kGathered>;
      kernel<<<grid, kGemvThreads, 0, stream_of(queue)>>>(problem);
      TW_CUDA_LAUNCHED("gemm gemv_dot_mma");
    });
  });
}

}  // namespace tilewave
