// Model: waves of tiles, each its products and then its epilogue; what one consumer adds of the other's sums comes in beside the last
// products.
#include "kernels/gemm/sm90/one_wave_sliced_k.h"

#include "kernels/core/queue.h"
#include "kernels/gemm/facts/has_cuda.h"
#include "kernels/gemm/sm90/warpgroup_time.h"

namespace tilewave {
namespace {

GemmPlan plan(const GemmProblem& problem, Tile tile, const DeviceInfo& device, int) {
  GemmPlan plan = plan_stored_tiles(problem, tile, device.sm_count);
  plan.stages = kSlicedStages;
  const std::int64_t loaded = ceil_div(problem.k, kKTile) * stage_bytes(tile);
  const bool placed = assigns_tiles(problem, plan.blocks, device) && stores_accumulators(problem) && loaded >= kMinAssignedBytes;
  plan.raster.kind = placed ? RasterKind::patches : RasterKind::columns;
  plan.cluster = placed ? 1 : neighbours(plan.tiling);
  const WarpgroupTime time = warpgroup_time(problem, tile, {.columns = tile.m}, device);
  const std::int64_t waves = ceil_div(plan.blocks, device.sm_count);
  plan.predicted_s = warpgroup_seconds(problem, plan, cycles_of_waves(problem, waves, time.mmas + time.epilogue, device), device);
  return plan;
}

}  // namespace

constinit const GemmKernel kOneWaveSlicedKKernel = on_hopper({.composition = {.kernel = "one_wave", .schedule = GemmSchedule::sliced_k},
                                                              .tiles = kOneWaveSlicedKTiles,
                                                              .shared_bytes = one_wave_sliced_k_shared_bytes,
                                                              .own_refusal = refuse_warpgroup,
                                                              .own_plan = plan,
                                                              .launch_cuda = cuda_launch<launch_one_wave_sliced_k>()});

}  // namespace tilewave
