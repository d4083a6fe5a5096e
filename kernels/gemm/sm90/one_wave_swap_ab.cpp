// Model: waves of tiles, each its products and then its epilogue. wgmma's rows run along M here.
#include "kernels/gemm/sm90/one_wave_swap_ab.h"

#include "kernels/core/queue.h"
#include "kernels/gemm/facts/has_cuda.h"
#include "kernels/gemm/sm90/warpgroup_time.h"

namespace tilewave {
namespace {

std::string refuse(const GemmProblem& problem, const DeviceInfo& device) {
  const std::string refusal = refuse_swap_ab(problem, device);
  if (!refusal.empty()) return refusal;
  if (problem.epilogue.bias_gradient) return "it sums no bias gradient.";
  return {};
}

GemmPlan plan(const GemmProblem& problem, Tile tile, const DeviceInfo& device, int) {
  GemmPlan plan = plan_stored_tiles(problem, tile, device.sm_count);
  plan.stages = swap_ab_stages(tile);
  const std::int64_t read = (problem.m + problem.n) * problem.k * size_of(problem.operand_dtype);
  const bool placed = assigns_tiles(problem, plan.blocks, device) && device.l2_bytes > 0 && read > device.l2_bytes;
  plan.raster.kind = placed ? RasterKind::patches : RasterKind::bands;
  plan.cluster = placed ? 1 : neighbours(plan.tiling);
  const Tile swapped = {.m = tile.n, .n = tile.m};
  const WarpgroupTime time = warpgroup_time(problem, swapped, {.columns = tile.n, .swapped = true}, device);
  const std::int64_t waves = ceil_div(plan.blocks, device.sm_count);
  plan.predicted_s = warpgroup_seconds(problem, plan, cycles_of_waves(problem, waves, time.mmas + time.epilogue, device), device);
  return plan;
}

}  // namespace

constinit const GemmKernel kOneWaveSwapAbKernel = on_hopper({.composition = {.kernel = "one_wave", .swap_ab = true},
                                                             .tiles = kOneWaveSwapAbTiles,
                                                             .shared_bytes = one_wave_swap_ab_shared_bytes,
                                                             .own_refusal = refuse,
                                                             .own_plan = plan,
                                                             .launch_cuda = cuda_launch<launch_one_wave_swap_ab>()});

}  // namespace tilewave
