// Blocks that stay, whose 16-bit results are finished and leave under the products of the next tile: stored with a bias or an activation,
// or through ReLU's derivative.
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

inline constexpr Tile kPersistentDeferredDerivativeTiles[] = {{256, 128}, {128, 128}};

// What the derivative reads of a tile comes in parts of 32 columns of every other 8 rows, up to so many with a stage.
inline constexpr int kChunksPerStage = 2;
constexpr int deferred_derivative_chunks(Tile tile) { return static_cast<int>(tile.m / 32 * 2); }
constexpr std::int64_t deferred_derivative_chunk_bytes(Tile tile) { return tile.n / 2 * 32 * 2; }
// As many k_tiles as then take a tile's parts under their products.
constexpr std::int64_t deferred_derivative_min_k_tiles(Tile tile) { return deferred_derivative_chunks(tile) / kChunksPerStage; }

// Beside each stage: its parts, and its two barriers.
constexpr std::int64_t deferred_derivative_stage_bytes(Tile tile) {
  return stage_bytes(tile) + kChunksPerStage * deferred_derivative_chunk_bytes(tile);
}
constexpr int deferred_derivative_stages(Tile tile) {
  return static_cast<int>((kBlockBytes - kBarrierBytes) / deferred_derivative_stage_bytes(tile));
}
constexpr std::int64_t persistent_deferred_derivative_shared_bytes(Tile tile) {
  return deferred_derivative_stages(tile) * deferred_derivative_stage_bytes(tile) + kBarrierBytes;
}

std::int64_t persistent_deferred_shared_bytes(Tile tile);

extern const GemmKernel kPersistentDeferredKernel;
void launch_persistent_deferred(CudaQueue& queue, const GemmCall& call);
void launch_persistent_deferred_store(CudaQueue& queue, const GemmCall& call);
void launch_persistent_deferred_derivative(CudaQueue& queue, const GemmCall& call);

}  // namespace tilewave
