// y = value: a thread for each element of a grid-stride loop.
#include "kernels/cuda/check.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/stream.h"
#include "kernels/fill.h"
#include "kernels/gemm/tiling.h"

namespace tilewave {
namespace {

constexpr int kThreads = 256;

template <class T>
__global__ void fill(T* y, std::int64_t ld, std::int64_t cols, std::int64_t elements, T value) {
  for (std::int64_t i = blockIdx.x * static_cast<std::int64_t>(kThreads) + threadIdx.x; i < elements;
       i += gridDim.x * static_cast<std::int64_t>(kThreads)) {
    y[i / cols * ld + i % cols] = value;
  }
}

}  // namespace

void run(CudaQueue& queue, const FillArgs& args) {
  const MatrixView& y = args.y;
  const std::int64_t elements = y.rows * y.cols;
  if (elements == 0) return;
  with_float(y.dtype, "fill", [&]<class T>(T) {
    const auto value = T(static_cast<Arithmetic<T>>(args.value));
    const std::int64_t blocks = std::min<std::int64_t>(ceil_div(elements, kThreads), 8 * device_of(queue).sm_count);
    fill<T><<<static_cast<unsigned>(blocks), kThreads, 0, stream_of(queue)>>>(static_cast<T*>(y.data), y.ld, y.cols, elements, value);
    TW_CUDA_LAUNCHED("fill");
  });
}

}  // namespace tilewave
