// How the time of the rows on Hopper's tensor cores is made up.
#pragma once

#include "kernels/gemm/cost/cost_model.h"
#include "kernels/gemm/sm90/warpgroup.h"

namespace tilewave {

// Model. A stage takes its MMAs at the tensor cores' rate, or, where row operands go through registers, as long as shared memory, 128 bytes
// per cycle, is busy with them. TMA fills stages beside that, line by line, and stores D: near ties take longer than either. A tile's
// epilogue moves bytes and computes activations, on two warpgroups. In cycles of an SM:
struct WarpgroupTime {
  double mmas = 0.0;         // of one tile's whole K
  double epilogue = 0.0;     // of one tile, where nothing else runs
  double deferred = 0.0;     // of one tile, where it is packed and runs under the next one's products: what those take longer
  double last_column = 0.0;  // more of the epilogue of a tile at D's right edge, which does not end with a whole word that a bias has
};
struct WarpgroupShape {
  std::int64_t columns = 0;  // of M, that one wgmma has
  bool direct_stores = false;
  bool swapped = false;          // the tile's m is N's
  double summing = 1.0;          // of a CTA's tiles, what sums a bias gradient
  std::int64_t cluster = 1;      // 2: its CTAs load half of their columns each
  bool deferred_stores = false;  // by the warps, in whole words
  int deferred_sides = 0;        // of what lies beside D, what comes or leaves with it under products, in nobody's way
  double words_loaded = 0.0;     // for each word of row operands that go through registers
};
WarpgroupTime warpgroup_time(const GemmProblem& problem, Tile tile, const WarpgroupShape& shape, const DeviceInfo& device);

// Waves of blocks that do not stay, each of which takes `block` cycles.
double cycles_of_waves(const GemmProblem& problem, std::int64_t waves, double block, const DeviceInfo& device);

// A schedule in seconds, beside what the launch asks of the second-level cache, of memory and of power. Tiles are taken down bands of
// group_columns(k) columns of D, or, with the raster "columns", down each column of tiles, or, with "patches", so that a GPC's lie
// together; the blocks of a cluster share the loads of their columns, and such neighbours some of them.
double warpgroup_seconds(const GemmProblem& problem, const GemmPlan& plan, double schedule_cycles, const DeviceInfo& device);

}  // namespace tilewave
