// Blocks that stay: warpgroups share one large tile after another, a cluster shares an operand, the copy engine stores.
#pragma once

#include "kernels/gemm/rows/warpgroup.h"

namespace tilewave {

inline constexpr Tile kPersistentCooperativeTiles[] = {{256, 128}, {192, 128}, {128, 128}, {128, 256}, {128, 192}};

// Consumers: two, or three where the tile has three times 64 of N. Each of their warps stores through two strips.
constexpr int cooperative_consumers(Tile tile) { return tile.n == 192 ? 3 : 2; }
inline constexpr int kCooperativeStrips = 2;
constexpr std::int64_t cooperative_rest(Tile tile) {
  return kStripBytesOfWarp * kCooperativeStrips * 4 * cooperative_consumers(tile) + kOnesBytes + kBarrierBytes;
}
constexpr int cooperative_stages(Tile tile) { return stages_beside(cooperative_rest(tile), tile); }
constexpr std::int64_t persistent_cooperative_shared_bytes(Tile tile) { return shared_bytes_beside(cooperative_rest(tile), tile); }

extern const GemmRow kPersistentCooperativeRow;
void launch_persistent_cooperative(CudaQueue& queue, const GemmArgs& args, const GemmPlan& plan);

}  // namespace tilewave
