// Blocks that stay, with warps of their own for a derivative.
#pragma once

#include "kernels/gemm/rows/warpgroup.h"

namespace tilewave {

inline constexpr Tile kPersistentEpilogueWarpsTiles[] = {{256, 128}, {128, 256}, {128, 128}};

// Warpgroups beside the two consumers: a product of 256 columns needs more registers than the compiler grants where there are four.
constexpr int epilogue_warps_others(Tile tile) { return tile.m == 256 ? 1 : 2; }
// A tile's sums in 16 bits.
constexpr std::int64_t handed_over_bytes(Tile tile) { return tile.m * tile.n * 2; }
constexpr std::int64_t persistent_epilogue_warps_rest(Tile tile) { return handed_over_bytes(tile) + kBarrierBytes; }
constexpr int epilogue_warps_stages(Tile tile) { return stages_beside(persistent_epilogue_warps_rest(tile), tile); }
constexpr std::int64_t persistent_epilogue_warps_shared_bytes(Tile tile) {
  return shared_bytes_beside(persistent_epilogue_warps_rest(tile), tile);
}

extern const GemmRow kPersistentEpilogueWarpsRow;
void launch_persistent_epilogue_warps(CudaQueue& queue, const GemmArgs& args, const GemmPlan& plan);

}  // namespace tilewave
