// The ring of stages filled by TMA, multiplied by mma.sync: what Tensor Cores of compute capability 9.0 and newer have in
// common, wgmma or not.
#pragma once

#include "kernels/gemm/sm90/warpgroup.h"

namespace tilewave {

// Eight warps of 64 x 64, the longer side four of them.
inline constexpr Tile kBulkCopyMmaTiles[] = {{256, 128}, {128, 256}};
inline constexpr int kBulkCopyMmaStages = 3, kBulkCopyMmaWarps = 8, kBulkCopyMmaStagingBuffers = 4;  // of a warp
// Stages, the strips through which a warp stores, barriers and where the copies are; whichever way the tile lies in memory.
constexpr std::int64_t bulk_copy_mma_shared_bytes(Tile tile) {
  return kBulkCopyMmaStages * stage_bytes(tile) + std::int64_t{kBulkCopyMmaWarps} * kBulkCopyMmaStagingBuffers * kStagingBytesOfWarp + 256;
}

extern const GemmKernel kBulkCopyMmaKernel;
void launch_bulk_copy_mma(CudaQueue& queue, const GemmCall& call);

}  // namespace tilewave
