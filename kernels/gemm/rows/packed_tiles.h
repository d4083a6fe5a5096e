// Panels of A and B are packed so that a register tile reads them front to back; every thread takes macro tiles of D, runs
// all of K in blocks that stay in its caches, and finishes each register tile with the epilogue.
// Vectors run along i, the fastest dimension of D: i = m, j = n for an m-major D, and the other way round for an n-major one.
#pragma once

#include <algorithm>

#include "kernels/gemm/row.h"

namespace tilewave {

inline constexpr Tile kPackedTiles[] = {{256, 192}, {128, 192}, {128, 96}, {384, 96}, {192, 96}, {96, 96}, {64, 48}};

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

// The workspace: one slab of packed panels of each operand, then the sums of one macro tile for each slot. It is the same
// for every width of registers, so that a plan made without the CPU at hand holds.
struct PackedLayout {
  static constexpr std::int64_t kBlockK = 256;            // a register tile's panels of one block stay in the first-level cache
  static constexpr std::int64_t kSlabBytes = 16ll << 20;  // of packed panels of one operand, where one tile's are not more

  std::int64_t tile_i = 0, tile_j = 0;
  std::int64_t blocks_k = 0, block_k = 0;
  std::int64_t slab_tiles_i = 0, slab_tiles_j = 0;    // tiles of a slab in each dimension
  std::int64_t panels_i = 0, panels_j = 0, sums = 0;  // elements

  constexpr PackedLayout(const GemmProblem& problem, Tile tile) {
    const bool swapped = problem.d_major == Major::n;
    const std::int64_t i = swapped ? problem.n : problem.m, j = swapped ? problem.m : problem.n;
    tile_i = swapped ? tile.n : tile.m;
    tile_j = swapped ? tile.m : tile.n;
    blocks_k = ceil_div(problem.k, kBlockK);
    block_k = ceil_div(problem.k, blocks_k);
    const std::int64_t widest_i = std::min(tile_i, i) + kWidestPanel, widest_j = std::min(tile_j, j) + kWidestPanel;  // whole panels
    const auto slab_tiles = [&](std::int64_t tiles, std::int64_t widest) {
      return std::min(tiles, std::max<std::int64_t>(1, kSlabBytes / (widest * problem.k * size_of(problem.operand_dtype))));
    };
    slab_tiles_i = slab_tiles(ceil_div(i, tile_i), widest_i);
    slab_tiles_j = slab_tiles(ceil_div(j, tile_j), widest_j);
    panels_i = round_up(slab_tiles_i * widest_i * problem.k, kWidestPanel);
    panels_j = round_up(slab_tiles_j * widest_j * problem.k, kWidestPanel);
    sums = blocks_k == 1 ? kWidestPanel * kWidestPanel : round_up(widest_i * widest_j, kWidestPanel);
  }

  constexpr std::int64_t elements(std::int64_t slots) const { return panels_i + panels_j + slots * sums; }
};

extern const GemmRow kPackedTilesRow;
void launch_packed_tiles(CpuQueue& queue, const GemmArgs& args, const GemmPlan& plan);

}  // namespace tilewave
