// A warpgroup that only loads, two that only multiply, and a ring of stages between them.
#pragma once

#include "kernels/gemm/sm90/warpgroup.h"

namespace tilewave {

inline constexpr Tile kWarpSpecializedTiles[] = {{256, 128}};
inline constexpr int kWarpSpecializedStages = 4;
constexpr std::int64_t warp_specialized_shared_bytes(Tile tile) {
  return kWarpSpecializedStages * stage_bytes(tile) + kOnesBytes + kBarrierBytes;
}

extern const GemmKernel kWarpSpecializedKernel;
void launch_warp_specialized(CudaQueue& queue, const GemmCall& call);

}  // namespace tilewave
