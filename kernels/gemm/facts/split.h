// Sums split along K: the workspace that the parts lie in until one pass adds them in order. And what blocks that stay take where K is
// split only of the tiles that whole waves leave.
#pragma once

#include <algorithm>

#include "kernels/gemm/problem.h"
#include "kernels/gemm/tiling.h"

namespace tilewave {

inline constexpr std::int64_t kSplitPitch = 8;  // a part's rows are this many elements' multiple

// Bytes of `split` parts of the sums, the bias gradient's included; none where nothing is split.
constexpr std::int64_t split_bytes(const GemmProblem& problem, std::int64_t split) {
  if (split == 1) return 0;
  const std::int64_t rows = problem.d_major == Major::m ? problem.n : problem.m, cols = problem.d_major == Major::m ? problem.m : problem.n;
  const std::int64_t part = rows * round_up(cols, kSplitPitch) + (problem.epilogue.bias_gradient ? problem.n : 0);
  return split * part * (problem.operand_dtype == DType::f64 ? 8 : 4);
}

// Tiles that whole waves of `blocks` leave; each is taken in `split` parts of its K, whose sums lie in the workspace until they are added.
constexpr std::int64_t split_tiles(std::int64_t tiles, std::int64_t blocks, std::int64_t split) { return split == 1 ? 0 : tiles % blocks; }
// What a block takes at a time, of so many items: first tiles, then parts of the others.
struct TileSlice {
  int tile = 0, part = 0;
};
// All parts of a tile before the next one's.
constexpr TileSlice tile_by_tile(int item, int whole_tiles, int split) {
  if (item < whole_tiles) return {.tile = item};
  return {.tile = whole_tiles + (item - whole_tiles) / split, .part = (item - whole_tiles) % split};
}
// The first part of every tile before their second ones, so that neighbours read the same of K.
constexpr TileSlice slice_by_slice(int item, int whole_tiles, int tiles) {
  if (item < whole_tiles) return {.tile = item};
  const int cut = tiles - whole_tiles;
  return {.tile = whole_tiles + (item - whole_tiles) % cut, .part = (item - whole_tiles) / cut};
}
// K is counted in stages.
struct StagesOfK {
  int begin = 0, end = 0;
};
constexpr StagesOfK stages_of_slice(int stages, int part, int parts) {
  return {.begin = stages / parts * part + std::min(part, stages % parts),
          .end = stages / parts * (part + 1) + std::min(part + 1, stages % parts)};
}

}  // namespace tilewave
