// The first rung: a thread has a row, and reads it element by element. The lanes of a warp read as many lines of memory as there are lanes,
// of which each uses an element at a time; what makes that slow is that the other elements must survive in the first-level cache until
// their turn comes.
#include "kernels/cuda/gemm/gemv/gemv.h"
#include "kernels/gemm/gemv/gemv_thread_rows.h"

namespace tilewave {
namespace {

static_assert(kGemvThreadRowsTiles[0].m == kGemvThreads);

template <class T>
__global__ void __launch_bounds__(kGemvThreads) gemv_thread_rows(const __grid_constant__ GemvProblem<Arithmetic<T>> p) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * kGemvThreads + threadIdx.x;
  if (row >= p.rows) return;
  const T* const elements = static_cast<const T*>(p.matrix.data) + row * p.matrix.across;
  const T* const vector = static_cast<const T*>(p.vectors.data) + blockIdx.y * p.vectors.across;
  Arithmetic<T> sum = 0;
#pragma unroll 4
  for (int k = 0; k < p.depth; ++k) sum += load(elements[k]) * load(vector[k * p.vectors.along]);
  finish_row(p, row, blockIdx.y, sum);
}

}  // namespace

void launch_gemv_thread_rows(CudaQueue& queue, const GemmCall& call) {
  const GemvSides sides = gemv_sides(call.problem, call.plan.tile);
  const dim3 grid(static_cast<unsigned>(ceil_div(sides.rows, kGemvThreads)), static_cast<unsigned>(sides.vectors));
  with_float(call.args.a.dtype, "gemm", [&]<class T>(T) {
    gemv_thread_rows<T><<<grid, kGemvThreads, 0, stream_of(queue)>>>(gemv_problem_of<T>(queue, call, false));
    TW_CUDA_LAUNCHED("gemm gemv_thread_rows");
  });
}

}  // namespace tilewave
