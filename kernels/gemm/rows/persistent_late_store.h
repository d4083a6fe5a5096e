// Blocks that stay, whose 16-bit sums leave under the products of the next tile.
#pragma once

#include "kernels/gemm/rows/warpgroup.h"

namespace tilewave {

inline constexpr Tile kPersistentLateStoreTiles[] = {{256, 128}, {192, 128}, {128, 128}};

inline constexpr int kLateStoreConsumers = 2;
// As many stages as fit in a block's 227 KB.
constexpr int late_store_stages(Tile tile) { return static_cast<int>((kBlockBytes - kBarrierBytes) / stage_bytes(tile)); }
constexpr std::int64_t persistent_late_store_shared_bytes(Tile tile) { return late_store_stages(tile) * stage_bytes(tile) + kBarrierBytes; }

extern const GemmRow kPersistentLateStoreRow;
void launch_persistent_late_store(CudaQueue& queue, const GemmArgs& args, const GemmPlan& plan);

}  // namespace tilewave
