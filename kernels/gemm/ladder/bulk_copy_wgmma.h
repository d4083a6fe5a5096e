// The first row on Hopper's own instructions: a ring of stages that TMA fills, and wgmma that reads them.
#pragma once

#include "kernels/gemm/sm90/warpgroup.h"

namespace tilewave {

inline constexpr Tile kBulkCopyWgmmaTiles[] = {{128, 128}};
inline constexpr int kBulkCopyWgmmaStages = 6;
constexpr std::int64_t bulk_copy_wgmma_shared_bytes(Tile tile) {
  return kBulkCopyWgmmaStages * stage_bytes(tile) + kOnesBytes + kBarrierBytes;
}

extern const GemmKernel kBulkCopyWgmmaKernel;
void launch_bulk_copy_wgmma(CudaQueue& queue, const GemmCall& call);

}  // namespace tilewave
