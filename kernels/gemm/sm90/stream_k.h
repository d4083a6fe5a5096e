// Blocks that stay and have equal work: whole tiles while all blocks have one, and equal shares of the K of the rest.
#pragma once

#include "kernels/gemm/sm90/warpgroup.h"

namespace tilewave {

inline constexpr Tile kStreamKTiles[] = {{256, 128}, {192, 128}};

inline constexpr int kStreamKConsumers = 2, kStreamKStagingBuffers = 2, kStreamKWarps = 4 * kStreamKConsumers;
inline constexpr std::int64_t kStreamKRest = kStagingBytesOfWarp * kStreamKStagingBuffers * kStreamKWarps + kOnesBytes + kBarrierBytes;
constexpr int stream_k_stages(Tile tile) { return stages_beside(kStreamKRest, tile); }
constexpr std::int64_t stream_k_shared_bytes(Tile tile) { return shared_bytes_beside(kStreamKRest, tile); }

// Tiles whose K is shared out among `blocks` blocks: what full waves leave, with the last of those so that a share is seldom short.
constexpr std::int64_t stream_k_tiles(std::int64_t tiles, std::int64_t blocks) {
  if (tiles % blocks == 0) return 0;
  return tiles < blocks ? tiles : blocks + tiles % blocks;
}
// The workspace: of each block the sums of the part that ends within a tile, and those of its rows.
constexpr std::int64_t stream_k_workspace_bytes(std::int64_t blocks, Tile tile) { return blocks * (tile.m + 1) * tile.n * 4; }

extern const GemmKernel kStreamKKernel;
void launch_stream_k(CudaQueue& queue, const GemmCall& call);

}  // namespace tilewave
