// Blocks that stay, whose 16-bit results meet a derivative under the products of the next tile.
#pragma once

#include "kernels/gemm/sm90/warpgroup.h"

namespace tilewave {

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

std::string refuse_deferred_derivative(const GemmProblem& problem, const DeviceInfo& device);
GemmPlan plan_deferred_derivative(const GemmProblem& problem, Tile tile, const DeviceInfo& device);
void launch_persistent_deferred_derivative(CudaQueue& queue, const GemmCall& call);

}  // namespace tilewave
