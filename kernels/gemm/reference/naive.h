// The oracle: every dtype, major and epilogue, sums in fp64, never optimised.
#pragma once

#include "kernels/gemm/kernel.h"

namespace tilewave {

inline constexpr Tile kNaiveTiles[] = {{1, 1}};        // an output at a time
inline constexpr Tile kCudaNaiveTiles[] = {{128, 1}};  // a block's threads, an output each, along M and on into the next column

extern const GemmKernel kNaiveKernel, kCudaNaiveKernel;
void launch_naive(CpuQueue& queue, const GemmCall& call);
void launch_naive(CudaQueue& queue, const GemmCall& call);

}  // namespace tilewave
