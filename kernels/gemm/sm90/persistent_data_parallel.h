// Blocks that stay: warpgroups share one large tile after another, a cluster shares an operand, TMA stores.
#pragma once

#include <algorithm>

#include "kernels/gemm/sm90/warpgroup.h"

namespace tilewave {

inline constexpr Tile kPersistentDataParallelTiles[] = {{256, 128}, {192, 128}, {128, 128}, {128, 256}, {128, 192}};

// Consumers: two, or three where the tile has three times 64 of N.
constexpr int cooperative_consumers(Tile tile) { return tile.n == 192 ? 3 : 2; }
constexpr std::int64_t cooperative_rest_of(Tile tile, int buffers) {
  return kStagingBytesOfWarp * buffers * 4 * cooperative_consumers(tile) + kOnesBytes + kBarrierBytes;
}
// Each of their warps stores through two strips, or where it makes a weight's gradient through one if that makes room for a stage.
constexpr int cooperative_staging_buffers(Tile tile, bool gradient) {
  const auto stages = [&](int buffers) { return stages_beside(cooperative_rest_of(tile, buffers), tile); };
  return gradient && stages(1) > stages(2) ? 1 : 2;
}
constexpr std::int64_t cooperative_rest(Tile tile, bool gradient) {
  return cooperative_rest_of(tile, cooperative_staging_buffers(tile, gradient));
}
constexpr int cooperative_stages(Tile tile, bool gradient) { return stages_beside(cooperative_rest(tile, gradient), tile); }
constexpr std::int64_t cooperative_bytes(Tile tile, bool gradient) { return shared_bytes_beside(cooperative_rest(tile, gradient), tile); }
constexpr std::int64_t persistent_data_parallel_shared_bytes(Tile tile) {
  return std::max(cooperative_bytes(tile, false), cooperative_bytes(tile, true));
}
// Whether a kernel of a weight's gradient makes it. Elements at the end of D's rows would take two strips.
bool is_cooperative_gradient(const GemmProblem& problem, Tile tile);

extern const GemmKernel kPersistentDataParallelKernel;
void launch_persistent_data_parallel(CudaQueue& queue, const GemmCall& call);

}  // namespace tilewave
