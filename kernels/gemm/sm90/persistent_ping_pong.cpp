// Model: every block's tiles one after another, each its products and its epilogue, which delays the other warpgroup's products by as
// much as it takes, or by half of it where a gradient's fp32 sums leave; the last epilogue stands alone.
#include "kernels/gemm/sm90/persistent_ping_pong.h"

#include <algorithm>

#include "kernels/core/queue.h"
#include "kernels/gemm/facts/has_cuda.h"
#include "kernels/gemm/sm90/warpgroup_time.h"

namespace tilewave {
namespace {

GemmPlan plan(const GemmProblem& problem, Tile tile, const DeviceInfo& device, int) {
  GemmPlan plan = plan_stored_tiles(problem, tile, device.sm_count);
  plan.stages = ping_pong_stages(tile);
  plan.raster.kind = RasterKind::bands;
  const double rounds = plan_persistent(plan, device);
  const WarpgroupTime time = warpgroup_time(
      problem, tile, {.columns = tile.m, .summing = 1.0 / static_cast<double>(plan.tiling.tiles_m), .cluster = plan.cluster}, device);
  const double delay = makes_gradient(problem) && problem.output_dtype == DType::f32 ? 0.5 * time.epilogue : time.epilogue;
  const double cycles = cost_model_of(device).fill_cycles + rounds * (time.mmas + delay) + time.epilogue;
  plan.predicted_s = warpgroup_seconds(problem, plan, cycles, device);
  return plan;
}

}  // namespace

constinit const GemmKernel kPersistentPingPongKernel =
    on_hopper({.composition = {.kernel = "persistent", .schedule = GemmSchedule::ping_pong},
               .tiles = kPersistentPingPongTiles,
               .shared_bytes = persistent_ping_pong_shared_bytes,
               .own_refusal = refuse_warpgroup,
               .own_plan = plan,
               .launch_cuda = cuda_launch<launch_persistent_ping_pong>()});

}  // namespace tilewave
