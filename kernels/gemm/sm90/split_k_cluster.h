// For outputs of few tiles: the blocks of a cluster share the K of one tile and add up through each other's shared memory.
#pragma once

#include "kernels/gemm/sm90/warpgroup.h"

namespace tilewave {

inline constexpr Tile kSplitKClusterTiles[] = {{256, 128}, {192, 128}, {128, 128}};

inline constexpr int kSplitStagingBuffers = 2, kSplitWarps = 8;
inline constexpr std::int64_t kSplitRest = kStagingBytesOfWarp * kSplitStagingBuffers * kSplitWarps + kOnesBytes + kBarrierBytes;
constexpr int split_stages(Tile tile) { return stages_beside(kSplitRest, tile); }
constexpr std::int64_t split_k_cluster_shared_bytes(Tile tile) { return shared_bytes_beside(kSplitRest, tile); }

extern const GemmKernel kSplitKClusterKernel;
void launch_split_k_cluster(CudaQueue& queue, const GemmCall& call);

}  // namespace tilewave
