// Holds the contract of kernels/gemm/gemm.h, then hands the launch to the plan's row.
#include "kernels/cuda/core/stream.h"
#include "kernels/gemm/catalog.h"
#include "kernels/gemm/gemm.h"

namespace tilewave {

void run(CudaQueue& queue, const GemmArgs& args) {
  const GemmCall call = check(args, device_of(queue));
  call.kernel.launch_cuda(queue, call);
}

}  // namespace tilewave
