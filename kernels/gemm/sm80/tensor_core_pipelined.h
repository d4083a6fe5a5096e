// Tensor Cores fed through a ring of stages that cp.async fills; operands of any alignment.
#pragma once

#include "kernels/gemm/kernel.h"

namespace tilewave {

inline constexpr Tile kTensorCorePipelinedTile = {128, 128};
inline constexpr Tile kTensorCorePipelinedTiles[] = {kTensorCorePipelinedTile};
inline constexpr int kTensorCorePipelinedStages = 3;
inline constexpr int kTensorCorePipelinedTailBytes = 4 * 128;  // a word for each line of an operand's tile
inline constexpr std::int64_t kTensorCorePipelinedSharedBytes =
    kTensorCorePipelinedStages *
    ((kTensorCorePipelinedTile.m + kTensorCorePipelinedTile.n) * 128 + std::int64_t{2} * kTensorCorePipelinedTailBytes);

extern const GemmKernel kTensorCorePipelinedKernel;
void launch_tensor_core_pipelined(CudaQueue& queue, const GemmCall& call);

}  // namespace tilewave
