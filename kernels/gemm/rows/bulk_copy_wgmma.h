// The first row on Hopper's own instructions: a ring of stages that the bulk copy engine fills, and wgmma that reads them.
#pragma once

#include "kernels/gemm/rows/warpgroup.h"

namespace tilewave {

inline constexpr Tile kBulkCopyWgmmaTiles[] = {{128, 128}};
inline constexpr int kBulkCopyWgmmaStages = 6;
constexpr std::int64_t bulk_copy_wgmma_shared_bytes(Tile tile) {
  return kBulkCopyWgmmaStages * stage_bytes(tile) + kOnesBytes + kBarrierBytes;
}

extern const GemmRow kBulkCopyWgmmaRow;
void launch_bulk_copy_wgmma(CudaQueue& queue, const GemmArgs& args, const GemmPlan& plan);

}  // namespace tilewave
