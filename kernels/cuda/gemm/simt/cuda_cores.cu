// The first rung: a thread an output, both operands straight from global memory, sums in fp32 (fp64 for fp64). The threads of the
// first column (row) also sum the bias gradient.
#include "kernels/cuda/gemm/simt/core_operand.h"
#include "kernels/gemm/simt/cuda_cores.h"

namespace tilewave {
namespace {

constexpr int kAcross = kCudaCoresTiles[0].m, kDown = kCudaCoresTiles[0].n;  // threads of a block

template <class T>
__global__ void __launch_bounds__(kAcross* kDown) cuda_cores(const __grid_constant__ CoreProblem<T> p) {
  const std::int64_t tiles_across = ceil_div(p.epilogue.cols, kAcross);
  const std::int64_t row = blockIdx.x / tiles_across * kDown + threadIdx.y, col = blockIdx.x % tiles_across * kAcross + threadIdx.x;
  if (row >= p.epilogue.rows || col >= p.epilogue.cols) return;
  const T* left = static_cast<const T*>(p.left.data) + row * p.left.across;
  const T* right = static_cast<const T*>(p.right.data) + col * p.right.across;
  Arithmetic<T> z[1] = {}, left_sum = 0, right_sum = 0;
  for (std::int64_t k = 0; k < p.depth; ++k) {
    const Arithmetic<T> x = load(*left), y = load(*right);
    z[0] += x * y;
    left_sum += x;
    right_sum += y;
    left += p.left.along;
    right += p.right.along;
  }
  finish(p.epilogue, row, col, z);
  if (p.sum_left && col == 0) finish_bias_gradient(p.epilogue, row, left_sum);
  if (p.sum_right && row == 0) finish_bias_gradient(p.epilogue, col, right_sum);
}

}  // namespace

void launch_cuda_cores(CudaQueue& queue, const GemmCall& call) {
  with_float(call.args.a.dtype, "gemm", [&]<class T>(T) {
    cuda_cores<T><<<static_cast<unsigned>(call.plan.blocks), dim3(kAcross, kDown), 0, stream_of(queue)>>>(core_problem_of<T>(call, 1));
    TW_CUDA_LAUNCHED("gemm cuda_cores");
  });
}

}  // namespace tilewave
