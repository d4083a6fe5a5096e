// Holds the contract of kernels/gemm.h, then hands the launch to the plan's row.
#include "kernels/cuda/stream.h"
#include "kernels/gemm.h"
#include "kernels/gemm/catalog.h"

namespace tilewave {

void run(CudaQueue& queue, const GemmArgs& args) { check(args, device_of(queue)).launch_cuda(queue, args, *args.plan); }

}  // namespace tilewave
