// Adds to gemv_warp_rows: a CTA has a row, so that rows may be few and long. Its warps' sums meet in shared memory. Short rows leave most
// of it waiting for the few sums at the end.
#include "kernels/cuda/gemm/gemv/gemv.h"
#include "kernels/gemm/gemv/gemv_block_rows.h"

namespace tilewave {
namespace {

template <class T>
__global__ void __launch_bounds__(kGemvThreads) gemv_block_rows(const __grid_constant__ GemvProblem<Arithmetic<T>> p) {
  __shared__ Arithmetic<T> sums[kGemvWarps];
  const std::int64_t row = blockIdx.x;
  const int thread = static_cast<int>(threadIdx.x);
  const T* const elements = static_cast<const T*>(p.matrix.data) + row * p.matrix.across;
  const T* const vector = static_cast<const T*>(p.vectors.data) + blockIdx.y * p.vectors.across;
  Arithmetic<T> sum = 0;
#pragma unroll 4
  for (int k = thread; k < p.depth; k += kGemvThreads) sum += load(elements[k]) * load(vector[k * p.vectors.along]);
  sum = sum_over_warp(sum);
  if (thread % 32 == 0) sums[thread / 32] = sum;
  __syncthreads();
  if (thread != 0) return;
  sum = 0;
  for (const Arithmetic<T> one : sums) sum += one;
  finish_row(p, row, blockIdx.y, sum);
}

}  // namespace

void launch_gemv_block_rows(CudaQueue& queue, const GemmCall& call) {
  const GemvSides sides = gemv_sides(call.problem, call.plan.tile);
  const dim3 grid(static_cast<unsigned>(sides.rows), static_cast<unsigned>(sides.vectors));
  with_float(call.args.a.dtype, "gemm", [&]<class T>(T) {
    gemv_block_rows<T><<<grid, kGemvThreads, 0, stream_of(queue)>>>(gemv_problem_of<T>(queue, call, false));
    TW_CUDA_LAUNCHED("gemm gemv_block_rows");
  });
}

}  // namespace tilewave
