// bf16 operands, fp32 sums: packed_tiles with pairs of neighbours along K in the place of single elements, so that one
// instruction (AVX512-BF16's VDPBF16PS) multiplies and adds both. No kc block: sums stay in registers from end to end.
#pragma once

#include <algorithm>

#include "kernels/gemm/facts/tile_shares.h"
#include "kernels/gemm/kernel.h"

namespace tilewave {

inline constexpr Tile kPackedPairsTiles[] = {{256, 192}, {128, 96}, {64, 48}};

inline constexpr std::int64_t kPairsAlongI = 32, kPairsAlongJ = 12;  // the register tile: two registers by twelve broadcasts

// The workspace of one slot, in pairs: the packed panels of a tile.
struct PairsLayout {
  TileGrid grid;
  std::int64_t pairs = 0;  // along K
  std::int64_t panels_i = 0, panels_j = 0;

  constexpr PairsLayout(const GemmProblem& problem, Tile tile) {
    grid = grid_of(problem, tile);
    pairs = ceil_div(problem.k, 2);
    panels_i = round_up(std::min(grid.tile_i, grid.i), kPairsAlongI) * pairs;
    panels_j = round_up(std::min(grid.tile_j, grid.j), kPairsAlongJ) * pairs;
  }

  constexpr std::int64_t bytes(std::int64_t slots) const { return slots * (panels_i + panels_j) * 4; }
};

// Whether this CPU has the instruction.
bool cpu_multiplies_bf16_pairs();

extern const GemmKernel kPackedPairsKernel;
void launch_packed_pairs(CpuQueue& queue, const GemmCall& call);

}  // namespace tilewave
