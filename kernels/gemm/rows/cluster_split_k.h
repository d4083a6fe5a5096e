// For outputs of few tiles: the blocks of a cluster share the K of one tile and add up through each other's shared memory.
#pragma once

#include "kernels/gemm/rows/warpgroup.h"

namespace tilewave {

inline constexpr Tile kClusterSplitKTiles[] = {{256, 128}, {192, 128}, {128, 128}};

inline constexpr int kSplitWarps = 8;
constexpr int split_strips(Tile tile) { return strips_of_warp(tile, kSplitWarps, kOnesBytes + kBarrierBytes); }
constexpr std::int64_t split_rest(Tile tile) { return kStripBytesOfWarp * split_strips(tile) * kSplitWarps + kOnesBytes + kBarrierBytes; }
constexpr int split_stages(Tile tile) { return stages_beside(split_rest(tile), tile); }
constexpr std::int64_t cluster_split_k_shared_bytes(Tile tile) { return shared_bytes_beside(split_rest(tile), tile); }

extern const GemmRow kClusterSplitKRow;
void launch_cluster_split_k(CudaQueue& queue, const GemmArgs& args, const GemmPlan& plan);

}  // namespace tilewave
