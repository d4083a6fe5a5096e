// The kernels' own times, which rooms above do not see.
#include "kernels/gemm/tile_pace.h"

#include "kernels/gemm/cost/cost_model.h"
#include "kernels/gemm/sm90/warpgroup_time.h"

namespace tilewave {

TilePace tile_pace(const GemmProblem& problem, const GemmPlan& plan, const DeviceInfo& device) {
  const WarpgroupTime time = warpgroup_time(problem, plan.tile, {.columns = plan.tile.m}, device);
  const CostModel& model = cost_model_of(device);
  const std::int64_t k_tiles = ceil_div(problem.k, kKTile);
  return {.stages = plan.stages,
          .k_tiles = k_tiles,
          .k_tile = time.mmas / static_cast<double>(k_tiles),
          .latency = model.fill_cycles,
          .packing = model.packing_cycles,
          .epilogue = time.epilogue};
}

}  // namespace tilewave
