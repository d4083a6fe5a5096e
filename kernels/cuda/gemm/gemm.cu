// Holds the contract of kernels/gemm/gemm.h, then hands the launch to the plan's row.
#include "kernels/cuda/core/stream.h"
#include "kernels/gemm/catalog.h"
#include "kernels/gemm/gemm.h"

namespace tilewave {

void run(CudaQueue& queue, const GemmArgs& args) { check(args, device_of(queue)).launch_cuda(queue, args, *args.plan); }

}  // namespace tilewave
