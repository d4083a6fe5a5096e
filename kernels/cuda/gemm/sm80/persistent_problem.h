// What the portable rows share whose blocks stay and walk over the tiles: items, which are tiles in the raster's order and then the parts
// of those that whole waves leave, and how they are launched.
#pragma once

#include "kernels/cuda/gemm/sm80/warp_tile.h"
#include "kernels/gemm/facts/split.h"

namespace tilewave {

struct PersistentProblem : TileProblem {
  int k_tiles = 0;                  // of depth, in a tile
  int whole_tiles = 0, items = 0;   // an item is a tile, or one of `split` parts of its depth
  bool accumulators_alone = false;  // D is what the sums are, rounded to the operands' type
};

__device__ __forceinline__ TileSlice item_of(const PersistentProblem& p, int item) {
  return slice_by_slice(item, p.whole_tiles, p.tiles_down * p.tiles_across);
}
__device__ __forceinline__ TileCoord coord_of_item(const PersistentProblem& p, int item) { return tile_coord(p, item_of(p, item).tile); }
__device__ __forceinline__ StagesOfK depth_of_item(const PersistentProblem& p, int item) {
  return stages_of_slice(p.k_tiles, item_of(p, item).part, item < p.whole_tiles ? 1 : p.split);
}

struct PersistentLaunch {
  PersistentProblem problem;
  std::int64_t rows = 0, cols = 0;  // of a tile as D lies in memory
  std::int64_t grid = 0;
};
PersistentLaunch persistent_launch(const GemmCall& call);

// The second kernel: adds the parts of those tiles that were taken in parts, in order, and finishes them.
void reduce_tile_partials(CudaQueue& queue, const PersistentLaunch& launch);

}  // namespace tilewave
