// Conversion on a GPU: a thread an element. It runs where weights are set, and in a step where ranks sum gradients in bf16, whose rows lie
// without gaps.
#include "kernels/cuda/core/elements.h"
#include "kernels/cuda/core/stream.h"
#include "kernels/cuda/prim/check.h"
#include "kernels/gemm/tiling.h"
#include "kernels/ops/convert.h"

namespace tilewave {
namespace {

constexpr int kThreads = 256;

template <class To, class From>
__device__ To converted(From value) {
  if constexpr (std::is_same_v<To, double> && std::is_same_v<From, double>) {
    return value;
  } else {
    return store<To>(static_cast<Arithmetic<To>>(load(value)));
  }
}

template <class From, class To>
__global__ void convert(const From* x, std::int64_t x_ld, To* y, std::int64_t y_ld, std::int64_t cols, std::int64_t elements) {
  const std::int64_t stride = gridDim.x * static_cast<std::int64_t>(kThreads);
  const bool dense = x_ld == cols && y_ld == cols;
  for (std::int64_t i = blockIdx.x * static_cast<std::int64_t>(kThreads) + threadIdx.x; i < elements; i += stride) {
    if (dense) {
      y[i] = converted<To>(x[i]);
    } else {
      const std::int64_t row = i / cols, col = i % cols;
      y[row * y_ld + col] = converted<To>(x[row * x_ld + col]);
    }
  }
}

}  // namespace

void run(CudaQueue& queue, const ConvertArgs& args) {
  check(args);
  const std::int64_t elements = args.x.rows * args.x.cols;
  if (elements == 0) return;
  const std::int64_t blocks = std::min<std::int64_t>(ceil_div(elements, kThreads), 16 * device_of(queue).sm_count);
  with_float(args.x.dtype, "convert", [&]<class From>(From) {
    with_float(args.y.dtype, "convert", [&]<class To>(To) {
      convert<<<static_cast<unsigned>(blocks), kThreads, 0, stream_of(queue)>>>(
          static_cast<const From*>(args.x.data), args.x.ld, static_cast<To*>(args.y.data), args.y.ld, args.x.cols, elements);
      TW_CUDA_LAUNCHED("convert");
    });
  });
}

}  // namespace tilewave
