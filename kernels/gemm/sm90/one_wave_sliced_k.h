// For outputs of about one wave: a block's two consumers take every other stage of one tile's K.
#pragma once

#include "kernels/gemm/sm90/warpgroup.h"

namespace tilewave {

inline constexpr Tile kOneWaveSlicedKTiles[] = {{128, 64}};

inline constexpr int kSlicedStagingBuffers = 16;  // of one warpgroup's warps or of two's
inline constexpr std::int64_t kSlicedRest = kStagingBytesOfWarp * kSlicedStagingBuffers + kOnesBytes + kBarrierBytes;
inline constexpr int kSlicedStages = stages_beside(kSlicedRest, kOneWaveSlicedKTiles[0]);
constexpr std::int64_t one_wave_sliced_k_shared_bytes(Tile tile) { return shared_bytes_beside(kSlicedRest, tile); }

extern const GemmKernel kOneWaveSlicedKKernel;
void launch_one_wave_sliced_k(CudaQueue& queue, const GemmCall& call);

}  // namespace tilewave
