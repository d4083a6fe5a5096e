// Blocks that stay, whose 16-bit results are finished and leave under the products of the next tile.
#pragma once

#include "kernels/gemm/rows/warpgroup.h"

namespace tilewave {

inline constexpr Tile kPersistentLateStoreTiles[] = {{256, 128}, {192, 128}, {128, 128}};

inline constexpr int kLateStoreConsumers = 2;
// Beside the stages: the barriers, and the bias of a tile's columns for each of a consumer's four warps.
constexpr std::int64_t late_store_rest(Tile tile) { return kBarrierBytes + kLateStoreConsumers * 4 * tile.m * 2; }
constexpr int late_store_stages(Tile tile) { return stages_beside(late_store_rest(tile), tile); }
constexpr std::int64_t persistent_late_store_shared_bytes(Tile tile) { return shared_bytes_beside(late_store_rest(tile), tile); }

extern const GemmRow kPersistentLateStoreRow;
void launch_persistent_late_store(CudaQueue& queue, const GemmArgs& args, const GemmPlan& plan);

}  // namespace tilewave
