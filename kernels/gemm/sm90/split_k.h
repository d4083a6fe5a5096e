// For outputs of few tiles and a long K: blocks anywhere on the GPU share the K of one tile and add up through the workspace.
#pragma once

#include "kernels/gemm/sm90/warpgroup.h"

namespace tilewave {

inline constexpr Tile kSplitKTiles[] = {{256, 128}, {192, 128}, {128, 128}};

inline constexpr int kWorkspaceSplitStagingBuffers = 2, kWorkspaceSplitWarps = 8;
inline constexpr std::int64_t kWorkspaceSplitRest =
    kStagingBytesOfWarp * kWorkspaceSplitStagingBuffers * kWorkspaceSplitWarps + kOnesBytes + kBarrierBytes;
constexpr int split_k_stages(Tile tile) { return stages_beside(kWorkspaceSplitRest, tile); }
constexpr std::int64_t split_k_shared_bytes(Tile tile) { return shared_bytes_beside(kWorkspaceSplitRest, tile); }

// The workspace: of each tile every block's sums, and those of its rows.
constexpr std::int64_t split_k_bytes(std::int64_t tiles, std::int64_t split, Tile tile) {
  return tiles * split * (tile.m + 1) * tile.n * 4;
}

extern const GemmKernel kSplitKKernel;
void launch_split_k(CudaQueue& queue, const GemmCall& call);

}  // namespace tilewave
