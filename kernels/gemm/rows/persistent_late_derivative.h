// Blocks that stay, whose 16-bit results meet a derivative under the products of the next tile.
#pragma once

#include "kernels/gemm/rows/warpgroup.h"

namespace tilewave {

inline constexpr Tile kPersistentLateDerivativeTiles[] = {{256, 128}, {128, 128}};

// What the derivative reads of a tile comes in parts of 32 columns of every other 8 rows, up to so many with a stage.
inline constexpr int kPartsOfStage = 2;
constexpr int late_derivative_parts(Tile tile) { return static_cast<int>(tile.m / 32 * 2); }
constexpr std::int64_t late_derivative_part_bytes(Tile tile) { return tile.n / 2 * 32 * 2; }
// As many blocks of K as then take a tile's parts under their products.
constexpr std::int64_t late_derivative_least_blocks(Tile tile) { return late_derivative_parts(tile) / kPartsOfStage; }

// Beside each stage: its parts, and its two barriers.
constexpr std::int64_t late_derivative_stage_bytes(Tile tile) {
  return stage_bytes(tile) + kPartsOfStage * late_derivative_part_bytes(tile);
}
constexpr int late_derivative_stages(Tile tile) {
  return static_cast<int>((kBlockBytes - kBarrierBytes) / late_derivative_stage_bytes(tile));
}
constexpr std::int64_t persistent_late_derivative_shared_bytes(Tile tile) {
  return late_derivative_stages(tile) * late_derivative_stage_bytes(tile) + kBarrierBytes;
}

extern const GemmRow kPersistentLateDerivativeRow;
void launch_persistent_late_derivative(CudaQueue& queue, const GemmArgs& args, const GemmPlan& plan);

}  // namespace tilewave
