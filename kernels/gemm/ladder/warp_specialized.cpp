// Model: waves of tiles, each its products and then its epilogue, behind the latency of the first loads.
#include "kernels/gemm/ladder/warp_specialized.h"

#include "kernels/core/queue.h"
#include "kernels/gemm/facts/has_cuda.h"
#include "kernels/gemm/sm90/warpgroup_time.h"

namespace tilewave {
namespace {

GemmPlan plan(const GemmProblem& problem, Tile tile, const DeviceInfo& device, int) {
  GemmPlan plan = plan_stored_tiles(problem, tile, device.sm_count);
  plan.stages = kWarpSpecializedStages;
  const WarpgroupTime time = warpgroup_time(problem, tile, {.columns = tile.m, .direct_stores = true}, device);
  const std::int64_t waves = ceil_div(plan.blocks, device.sm_count);
  plan.predicted_s = warpgroup_seconds(problem, plan, cycles_of_waves(problem, waves, time.mmas + time.epilogue, device), device);
  return plan;
}

}  // namespace

constinit const GemmKernel kWarpSpecializedKernel = on_hopper({.composition = {.kernel = "warp_specialized"},
                                                               .ladder = true,
                                                               .tiles = kWarpSpecializedTiles,
                                                               .shared_bytes = warp_specialized_shared_bytes,
                                                               .own_refusal = refuse_warpgroup,
                                                               .own_plan = plan,
                                                               .launch_cuda = cuda_launch<launch_warp_specialized>()});

}  // namespace tilewave
