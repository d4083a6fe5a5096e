// Adds to gemv_thread_rows: a warp has a row. Its lanes read neighbours, which is one line or half of one a load (coalesced), and add up by
// shuffles when all is read. Each load still brings a lane no more than an element.
#include "kernels/cuda/gemm/gemv/gemv.h"
#include "kernels/gemm/gemv/gemv_warp_rows.h"

namespace tilewave {
namespace {

static_assert(kGemvWarpRowsTiles[0].m == kGemvWarps);

template <class T>
__global__ void __launch_bounds__(kGemvThreads) gemv_warp_rows(const __grid_constant__ GemvProblem<Arithmetic<T>> p) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * kGemvWarps + threadIdx.x / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (row >= p.rows) return;
  const T* const elements = static_cast<const T*>(p.matrix.data) + row * p.matrix.across;
  const T* const vector = static_cast<const T*>(p.vectors.data) + blockIdx.y * p.vectors.across;
  Arithmetic<T> sum = 0;
#pragma unroll 4
  for (int k = lane; k < p.depth; k += 32) sum += load(elements[k]) * load(vector[k * p.vectors.along]);
  sum = sum_over_warp(sum);
  if (lane == 0) finish_row(p, row, blockIdx.y, sum);
}

}  // namespace

void launch_gemv_warp_rows(CudaQueue& queue, const GemmCall& call) {
  const GemvSides sides = gemv_sides(call.problem, call.plan.tile);
  const dim3 grid(static_cast<unsigned>(ceil_div(sides.rows, std::int64_t{kGemvWarps})), static_cast<unsigned>(sides.vectors));
  with_float(call.args.a.dtype, "gemm", [&]<class T>(T) {
    gemv_warp_rows<T><<<grid, kGemvThreads, 0, stream_of(queue)>>>(gemv_problem_of<T>(queue, call, false));
    TW_CUDA_LAUNCHED("gemm gemv_warp_rows");
  });
}

}  // namespace tilewave
