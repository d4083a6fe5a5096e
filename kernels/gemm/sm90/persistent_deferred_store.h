// Blocks that stay, whose 16-bit results are finished and leave under the products of the next tile.
#pragma once

#include "kernels/gemm/sm90/warpgroup.h"

namespace tilewave {

inline constexpr Tile kPersistentDeferredStoreTiles[] = {{256, 128}, {192, 128}, {128, 128}, {128, 192}};

constexpr int deferred_store_consumers(Tile tile) { return static_cast<int>(tile.n / 64); }
// Beside each stage: its two barriers, and a line of bias for the tile's columns. All of it ends on a whole KB.
constexpr std::int64_t deferred_store_beside(Tile tile) { return tile.m * 2 + 16; }
constexpr int deferred_store_stages(Tile tile) {
  return static_cast<int>((kBlockBytes - kBarrierBytes) / (stage_bytes(tile) + deferred_store_beside(tile)));
}
constexpr std::int64_t persistent_deferred_store_shared_bytes(Tile tile) {
  return deferred_store_stages(tile) * stage_bytes(tile) +
         round_up(deferred_store_stages(tile) * deferred_store_beside(tile), std::int64_t{1024});
}

// D's last columns that make no whole 16 bytes, of rows that start on such: a launch of their own computes them where operands lie as a
// forward's, and the tiles end before them. 0 where there are none, and where they go with the others. Of a problem that the row does not
// refuse: A and B start on 16 bytes, D has their type.
std::int64_t deferred_store_last_columns(const GemmProblem& problem);

std::string refuse_deferred_store(const GemmProblem& problem, const DeviceInfo& device);
GemmPlan plan_deferred_store(const GemmProblem& problem, Tile tile, const DeviceInfo& device);
void launch_persistent_deferred_store(CudaQueue& queue, const GemmCall& call);

}  // namespace tilewave
