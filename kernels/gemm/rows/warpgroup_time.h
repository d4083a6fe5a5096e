// How the time of the rows on Hopper's tensor cores is made up.
#pragma once

#include "kernels/gemm/rows/warpgroup.h"
#include "kernels/gemm/time_model.h"

namespace tilewave {

// Model. A stage takes its products at the tensor cores' rate, or as long as shared memory, 128 bytes a cycle, is busy with filling it
// and with what wgmma reads of it, whichever is longer. A tile's epilogue moves bytes and computes activations, on as many
// warpgroups as share the tile. In cycles of an SM:
struct WarpgroupTime {
  double products = 0.0;  // of one tile's whole K
  double epilogue = 0.0;  // of one tile
};
struct WarpgroupShape {
  std::int64_t columns = 0;  // of M, that one wgmma has
  int consumers = 0;         // warpgroups that share a tile
  bool direct_stores = false;
  bool rows_through_registers = false;  // element by element
  bool crowded = false;                 // whether the epilogue computes beside 128 sums a thread and a loop that goes on
};
WarpgroupTime warpgroup_time(const GemmProblem& problem, Tile tile, const WarpgroupShape& shape, const DeviceInfo& device);

// A schedule in seconds, beside what the launch asks of the second-level cache, of memory and of power. Tiles are taken down bands of
// kBandColumns columns of D; the blocks of a cluster share the loads of their columns.
double warpgroup_seconds(const GemmProblem& problem, const GemmPlan& plan, double schedule_cycles, const DeviceInfo& device);

}  // namespace tilewave
