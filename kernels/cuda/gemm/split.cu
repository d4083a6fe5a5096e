// Adds the parts of sums that were split along K, in order, and finishes them: a thread for every run of columns.
#include "kernels/cuda/gemm/epilogue.h"

namespace tilewave {
namespace {

constexpr int kThreads = 256;

template <int kWidth, class T>
__global__ void reduce(const GemmEpilogue e, const SplitKPartials<T> sums, std::int64_t split) {
  const std::int64_t runs = ceil_div(e.cols, kWidth);
  const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (index < e.rows * runs) {
    const std::int64_t row = index / runs, col = index % runs * kWidth;
    finish_partials<kWidth>(e, row, col, sums, split, 1, row * sums.pitch + col);
  }
  if (e.bias_gradient.data != nullptr && index < sums.n) {
    finish_bias_gradient(e, index, sums.bias_gradient(split, 1, index));
  }
}

}  // namespace

template <class T>
void reduce_split_k(CudaQueue& queue, const GemmEpilogue& e, const SplitKPartials<T>& sums, std::int64_t split) {
  const std::int64_t width = e.wide ? kRun : 1;
  const std::int64_t threads = std::max(e.rows * ceil_div(e.cols, width), e.bias_gradient.data != nullptr ? sums.n : 0);
  const auto blocks = static_cast<unsigned>(ceil_div(threads, kThreads));
  (e.wide ? reduce<kRun, T> : reduce<1, T>)<<<blocks, kThreads, 0, stream_of(queue)>>>(e, sums, split);
  TW_CUDA_LAUNCHED("gemm, the parts' sum");
}

template void reduce_split_k<float>(CudaQueue&, const GemmEpilogue&, const SplitKPartials<float>&, std::int64_t);
template void reduce_split_k<double>(CudaQueue&, const GemmEpilogue&, const SplitKPartials<double>&, std::int64_t);

}  // namespace tilewave
