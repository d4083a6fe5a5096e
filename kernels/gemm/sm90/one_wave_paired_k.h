// For weights' gradients of half a wave of tiles: the two blocks of a pair take a half of a tile's K each, and each finishes half of its
// columns.
#pragma once

#include "kernels/gemm/sm90/warpgroup.h"

namespace tilewave {

inline constexpr Tile kOneWavePairedKTiles[] = {{128, 128}};

inline constexpr int kPairedStagingBuffers = 2, kPairedWarps = 8;  // a warp's, and that finish
inline constexpr std::int64_t kPairedRest = kStagingBytesOfWarp * kPairedStagingBuffers * kPairedWarps + kBarrierBytes;
constexpr int one_wave_paired_k_stages(Tile tile) { return stages_beside(kPairedRest, tile); }
constexpr std::int64_t one_wave_paired_k_shared_bytes(Tile tile) { return shared_bytes_beside(kPairedRest, tile); }

extern const GemmKernel kOneWavePairedKKernel;
void launch_one_wave_paired_k(CudaQueue& queue, const GemmCall& call);

}  // namespace tilewave
