// Model: every block's tiles one after another, each its products and then its epilogue, little of which one consumer hides under the
// other's products; loads run ahead.
#include "kernels/gemm/sm90/persistent_data_parallel.h"

#include <algorithm>

#include "kernels/core/queue.h"
#include "kernels/gemm/facts/has_cuda.h"
#include "kernels/gemm/sm90/warpgroup_time.h"

namespace tilewave {
namespace {

GemmPlan plan(const GemmProblem& problem, Tile tile, const DeviceInfo& device, int) {
  GemmPlan plan = plan_stored_tiles(problem, tile, device.sm_count);
  const bool gradient = is_cooperative_gradient(problem, tile);
  plan.stages = cooperative_stages(tile, gradient);
  plan.raster.kind = RasterKind::bands;
  const double rounds = plan_persistent(plan, device);
  const WarpgroupTime time = warpgroup_time(
      problem, tile, {.columns = tile.m, .summing = 1.0 / static_cast<double>(plan.tiling.tiles_m), .cluster = plan.cluster}, device);
  const CostModel& model = cost_model_of(device);
  const double edges = std::max(0.5, static_cast<double>(plan.tiling.tiles_n) / static_cast<double>(device.sm_count));
  const double cycles = model.fill_cycles + rounds * (time.mmas + model.tile_cycles + time.epilogue) + edges * time.last_column;
  plan.predicted_s = warpgroup_seconds(problem, plan, cycles, device);
  return plan;
}

}  // namespace

bool is_cooperative_gradient(const GemmProblem& problem, Tile tile) {
  return cooperative_staging_buffers(tile, true) > 1 ? makes_gradient(problem) : makes_whole_gradient(problem);
}

constinit const GemmKernel kPersistentDataParallelKernel = on_hopper({.composition = {.kernel = "persistent"},
                                                                      .tiles = kPersistentDataParallelTiles,
                                                                      .shared_bytes = persistent_data_parallel_shared_bytes,
                                                                      .own_refusal = refuse_warpgroup,
                                                                      .own_plan = plan,
                                                                      .launch_cuda = cuda_launch<launch_persistent_data_parallel>()});

}  // namespace tilewave
