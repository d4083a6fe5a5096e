// A thread an output, straight from global memory: every type, major and alignment.
#pragma once

#include "kernels/gemm/kernel.h"

namespace tilewave {

inline constexpr Tile kCudaCoresTiles[] = {{32, 8}};

extern const GemmKernel kCudaCoresKernel;
void launch_cuda_cores(CudaQueue& queue, const GemmCall& call);

}  // namespace tilewave
