// Tensor Cores for one operand whose rows start on 2, 4 or 8 bytes, a gradient's of a vocabulary that no one padded: rows 16 bytes'
// multiple apart are shifted alike, and those of one residue are read as an aligned matrix.
#pragma once

#include "kernels/gemm/facts/residues.h"
#include "kernels/gemm/kernel.h"

namespace tilewave {

inline constexpr Tile kTensorCoreResiduesTile = {128, 128};
inline constexpr Tile kTensorCoreResiduesTiles[] = {kTensorCoreResiduesTile};
inline constexpr int kTensorCoreResiduesStages = 3;
inline constexpr int kTensorCoreResiduesMargin = 8;  // lines of a tile that the shifts between residues take, where they fall across depth
inline constexpr std::int64_t kTensorCoreResiduesRingBytes =
    kTensorCoreResiduesStages * (kTensorCoreResiduesTile.m + kTensorCoreResiduesTile.n) * 128;
inline constexpr std::int64_t kTensorCoreResiduesEndsBytes = std::int64_t{4} * 8 * 64 * 4;  // of each warp, 8 lines of sums
inline constexpr std::int64_t kTensorCoreResiduesSharedBytes = kTensorCoreResiduesRingBytes + kTensorCoreResiduesEndsBytes;

// The narrow operand's rows: how many residues, and tiles down D as it lies in memory; they are D's rows, or K where it lies across it.
struct ResidueTiling {
  std::int64_t residues = 1, tiles_down = 0;
};
constexpr ResidueTiling residue_tiling(std::int64_t rows, std::int64_t alignment, bool along_depth, std::int64_t tile_rows) {
  const std::int64_t residues = 16 / alignment;
  return {.residues = residues,
          .tiles_down = along_depth ? residues * ceil_div(ceil_div(rows, residues), tile_rows)
                                    : ceil_div(rows, tile_rows - kTensorCoreResiduesMargin)};
}

extern const GemmKernel kTensorCoreResiduesKernel;
void launch_tensor_core_residues(CudaQueue& queue, const GemmCall& call);

}  // namespace tilewave
