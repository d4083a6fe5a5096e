// What a tile of a Hopper kernel takes by the cost model, part by part: for pictures.
#pragma once

#include <cstdint>

#include "kernels/gemm/plan.h"

namespace tilewave {

struct DeviceInfo;

// In cycles of an SM.
struct TilePace {
  int stages = 0;
  std::int64_t k_tiles = 0;
  double k_tile = 0.0;    // the MMAs of one
  double latency = 0.0;   // of a load
  double packing = 0.0;   // between two tiles' MMAs, of a deferred epilogue
  double epilogue = 0.0;  // of a tile, where nothing else runs
};
// Of a plan of one of the persistent kernels on a device with wgmma.
TilePace tile_pace(const GemmProblem& problem, const GemmPlan& plan, const DeviceInfo& device);

}  // namespace tilewave
