// A CPU's matrix unit (Intel AMX) multiplies tiles of 16 x 32 by 32 x 16 bf16 into 16 x 16 fp32 sums: packed_tiles with tile registers
// in the place of vectors. bf16 operands go in as they are. An f32 operand does where math is tf32, as the sum of two bf16 that have its
// highest 16 bits (tf32 has 11); of their four products the least is left out, and what is added up is near the product by 2^-14 (2^-10 in
// tf32).
#pragma once

#include <algorithm>

#include "kernels/gemm/facts/tile_shares.h"
#include "kernels/gemm/kernel.h"

namespace tilewave {

// Outputs along i (or j) of a register tile, two tile registers each way; steps of K of one instruction; bytes of a tile register.
inline constexpr std::int64_t kAmxPanel = 32, kAmxSteps = 32, kAmxRegisterBytes = 1024;

inline constexpr Tile kAmxTiles[] = {{512, 1536}, {512, 768}, {256, 1536}, {256, 768}, {128, 1536}, {128, 768}, {512, 256},
                                     {256, 256},  {128, 256}, {512, 64},   {128, 64},  {64, 64},    {64, 256}};

// Multiply-adds, of which fewer are one thread's.
constexpr std::int64_t small_amx_product(DType operand) { return operand == DType::f32 ? 1 << 21 : 1 << 22; }

// The workspace of one slot, in bytes: packed panels of one kc block, all of a tile's along i and one along j, the sums of a tile where
// there is more than one block, and sums over K of one operand's rows.
struct AmxLayout {
  static constexpr std::int64_t kKcBlock = 256, kOneBlockK = 512;  // as long, and at most so long that it is the only one
  static constexpr std::int64_t kRegisterTileBytes = kAmxPanel * kAmxPanel * 4;

  TileGrid grid;
  int parts = 1;  // bf16 that an element is the sum of
  std::int64_t block_k = 0, kc_blocks = 0;
  std::int64_t panel = 0;  // of kAmxPanel rows
  std::int64_t panels_i = 0, sums = 0, row_sums = 0;

  constexpr AmxLayout(const GemmProblem& problem, Tile tile) {
    grid = grid_of(problem, tile);
    parts = problem.operand_dtype == DType::f32 ? 2 : 1;
    const std::int64_t k = round_up(std::max(problem.k, std::int64_t{1}), kAmxSteps);
    block_k = k <= kOneBlockK ? k : kKcBlock;
    kc_blocks = ceil_div(k, block_k);
    panel = block_k / kAmxSteps * parts * 2 * kAmxRegisterBytes;
    const std::int64_t across = ceil_div(std::min(grid.tile_i, grid.i), kAmxPanel);
    const std::int64_t down = ceil_div(std::min(grid.tile_j, grid.j), kAmxPanel);
    panels_i = across * panel;
    sums = kc_blocks == 1 ? 2 * kRegisterTileBytes : across * down * kRegisterTileBytes;
    row_sums = std::max(across, down) * kAmxPanel * 4;
  }

  constexpr std::int64_t slot() const { return panels_i + panel + sums + round_up(row_sums, 64); }
  constexpr std::int64_t bytes(std::int64_t slots) const { return slots * slot() + 64; }  // slots begin on a cache line
};

// Whether this CPU has the unit and the system lets this process use it.
bool cpu_has_amx();

extern const GemmKernel kAmxTilesKernel;
void launch_amx_tiles(CpuQueue& queue, const GemmCall& call);

}  // namespace tilewave
