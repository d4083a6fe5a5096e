// What the portable rows share whose blocks stay and walk over the tiles: items, which are tiles in the raster's order and then the parts
// of those that whole waves leave, and how they are launched.
#pragma once

#include "kernels/cuda/gemm/warp_tile.h"
#include "kernels/gemm/split.h"

namespace tilewave {

struct PersistentProblem : TileProblem {
  int blocks_k = 0;                // of depth, in a tile
  int whole_tiles = 0, items = 0;  // an item is a tile, or one of `split` parts of its depth
  bool sums_alone = false;         // D is what the sums are, rounded to the operands' type
};

__device__ __forceinline__ TilePart item_of(const PersistentProblem& p, int item) {
  return part_by_part(item, p.whole_tiles, p.tiles_down * p.tiles_across);
}
__device__ __forceinline__ TilePlace place_of_item(const PersistentProblem& p, int item) { return place_of(p, item_of(p, item).tile); }
__device__ __forceinline__ StagesOfK depth_of_item(const PersistentProblem& p, int item) {
  return stages_of_part(p.blocks_k, item_of(p, item).part, item < p.whole_tiles ? 1 : p.split);
}

struct PersistentLaunch {
  PersistentProblem problem;
  std::int64_t rows = 0, cols = 0;  // of a tile as D lies in memory
  std::int64_t grid = 0;
};
PersistentLaunch persistent_launch(const GemmArgs& args, const GemmPlan& plan);

// The second kernel: adds the parts of those tiles that were taken in parts, in order, and finishes them.
void add_parts_of_tiles(CudaQueue& queue, const PersistentLaunch& launch);

}  // namespace tilewave
