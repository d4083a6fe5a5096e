// Every thread takes tiles of D, packs their panels of A and B a kc block at a time so that a register tile reads them front to
// back from its own caches, and finishes each register tile with the epilogue.
// Where D is small and both operands lie token by token (wgrad), K is cut into parts, so that a thread sums over the tokens it has at
// hand; one pass adds the parts in order. Shapes alone decide the parts.
// Vectors run along i, the fastest dimension of D: i = m, j = n for an m-major D, and the other way round for an n-major one.
#pragma once

#include <algorithm>
#include <bit>

#include "kernels/gemm/facts/tile_shares.h"
#include "kernels/gemm/kernel.h"

namespace tilewave {

inline constexpr Tile kPackedTiles[] = {{1024, 1024}, {1024, 512}, {1024, 384}, {512, 1536}, {512, 768},
                                        {256, 1536},  {256, 768},  {128, 1536}, {128, 768},  {256, 384},
                                        {128, 288},   {128, 192},  {64, 192},   {64, 96},    {96, 96}};

// The register tile: `vectors` SIMD registers along i times `columns` along j, as many sums as the register file holds.
struct RegisterTile {
  std::int64_t vectors = 0, columns = 0;
};
constexpr RegisterTile packed_register_tile(std::int64_t vector_bytes) {
  return vector_bytes >= 64 ? RegisterTile{.vectors = 2, .columns = 12} : RegisterTile{.vectors = 3, .columns = 4};
}
inline constexpr std::int64_t kWidestPanel = 32;  // of any register tile, in elements
static_assert(packed_register_tile(64).vectors * 64 / 4 <= kWidestPanel && packed_register_tile(32).vectors * 32 / 4 <= kWidestPanel &&
                  packed_register_tile(64).columns <= kWidestPanel,
              "a tile is cut into panels of at most kWidestPanel");

// Multiply-adds, of which fewer are one thread's, on operands that its caches hold: nothing is asked for ahead.
inline constexpr std::int64_t kSmallPackedProduct = 1 << 19;

// Whether the rows of both operands in memory are steps of K.
constexpr bool runs_over_tokens(const GemmProblem& problem) { return problem.a_major == Major::m && problem.b_major == Major::n; }

// Parts of K: long ones, a power of two of them, and so few that writing and adding them moves at most half as much as the operands.
inline constexpr std::int64_t kPackedPartK = 768, kMaxPackedParts = 8;
constexpr std::int64_t packed_parts(const GemmProblem& problem) {
  if (!runs_over_tokens(problem)) return 1;
  const std::int64_t most = std::min(problem.k / kPackedPartK, problem.k * (problem.m + problem.n) / (4 * problem.m * problem.n));
  return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(std::clamp<std::int64_t>(most, 1, kMaxPackedParts))));
}

// The workspace: in each slot packed panels of one kc block of both operands, and the sums of one tile; behind the slots the parts'
// sums. It is the same for every width of registers, so that a plan made without the CPU at hand holds.
struct PackedLayout {
  static constexpr std::int64_t kKcBlock = 256;       // a register tile's panels of one block stay in the first-level cache
  static constexpr std::int64_t kOneBlockK = 512;     // at most: sums that stay in registers are worth more than that
  static constexpr std::int64_t kColumnsAtOnce = 48;  // packed columns along j: whole cache lines, whole panels of any width

  TileGrid grid;
  std::int64_t kc_blocks = 0, block_k = 0;            // of a part
  std::int64_t padded_i = 0, padded_j = 0;            // a tile's rows in whole panels
  std::int64_t panels_i = 0, panels_j = 0, sums = 0;  // elements
  bool reads_i = false, reads_j = false;              // where they lie, not from packed panels
  std::int64_t part_ld = 0, part = 0;                 // of a part's sums: from one j to the next, and in all, the bias gradient's included

  constexpr PackedLayout(const GemmProblem& problem, Tile tile) {
    const bool swapped = problem.d_major == Major::n;
    grid = grid_of(problem, tile, packed_parts(problem));
    const std::int64_t part_k = ceil_div(problem.k, grid.parts);
    kc_blocks = part_k <= kOneBlockK ? 1 : ceil_div(part_k, kKcBlock);
    block_k = ceil_div(part_k, kc_blocks);
    padded_i = round_up(std::min(grid.tile_i, grid.i) + kWidestPanel - 1, kWidestPanel);
    padded_j = round_up(std::min(grid.tile_j, grid.j) + kWidestPanel - 1, kWidestPanel);
    panels_i = padded_i * round_up(block_k, 4);
    panels_j = (kColumnsAtOnce + kWidestPanel) * round_up(block_k, 4);
    sums = kc_blocks == 1 ? kWidestPanel * kWidestPanel : padded_i * padded_j;
    part_ld = round_up(grid.i, kWidestPanel);
    part = grid.parts == 1 ? 0 : part_ld * grid.j + round_up(problem.n, kWidestPanel);
    const bool sums_rows = problem.epilogue.bias_gradient;
    const std::int64_t rows = std::min(grid.tile_i, grid.i), columns = std::min(grid.tile_j, grid.j);
    const bool along_k = (swapped ? problem.a_major : problem.b_major) == Major::k;
    reads_i = !(sums_rows && swapped) && (swapped ? problem.b_major : problem.a_major) != Major::k && columns <= kFewColumns;
    reads_j = !(sums_rows && !swapped) && (rows <= kFewRows || (along_k && (kc_blocks == 1 || rows < kManyRows)));
  }

  constexpr std::int64_t slot() const { return panels_i + panels_j + sums; }
  constexpr std::int64_t elements(std::int64_t slots) const { return slots * slot() + grid.parts * part; }

 private:
  // So few that a panel is read too seldom to be packed; so many that it pays even where it could be read along k.
  static constexpr std::int64_t kFewColumns = 96, kFewRows = 128, kManyRows = 512;
};

extern const GemmKernel kPackedTilesKernel;
void launch_packed_tiles(CpuQueue& queue, const GemmCall& call);

}  // namespace tilewave
