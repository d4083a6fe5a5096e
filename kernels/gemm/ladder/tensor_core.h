// Tensor Cores: mma.sync on tiles that ldmatrix reads from shared memory; one stage, filled and used in turn.
#pragma once

#include "kernels/gemm/kernel.h"

namespace tilewave {

inline constexpr Tile kTensorCoreTile = {128, 128};
inline constexpr Tile kTensorCoreTiles[] = {kTensorCoreTile};

extern const GemmKernel kTensorCoreKernel;
void launch_tensor_core(CudaQueue& queue, const GemmCall& call);

}  // namespace tilewave
