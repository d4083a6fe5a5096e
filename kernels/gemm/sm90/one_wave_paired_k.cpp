// Model: waves of pairs, each block half of the products, then half of its sums on their way, which takes half as long as what another
// block has to fetch, and the epilogue of the other half.
#include "kernels/gemm/sm90/one_wave_paired_k.h"

#include <algorithm>

#include "kernels/core/queue.h"
#include "kernels/gemm/facts/has_cuda.h"
#include "kernels/gemm/sm90/warpgroup_time.h"

namespace tilewave {
namespace {

std::string refuse(const GemmProblem& problem, const DeviceInfo& device) {
  const std::string refusal = refuse_adding_alone(problem, device);
  if (!refusal.empty()) return refusal;
  if (problem.epilogue.bias_gradient) return "it sums no bias gradient.";
  if (!makes_whole_gradient(problem)) return "it makes weights' gradients, both operands across K, whose rows start and end on 16 bytes.";
  return {};
}

GemmPlan plan(const GemmProblem& problem, Tile tile, const DeviceInfo& device, int) {
  GemmPlan plan = plan_stored_tiles(problem, tile, device.sm_count);
  plan.stages = one_wave_paired_k_stages(tile);
  plan.split = plan.cluster = 2;
  plan.blocks = plan.tiling.tiles * plan.split;
  plan.raster.kind = RasterKind::columns;
  const CostModel& model = cost_model_of(device);
  const WarpgroupTime time = warpgroup_time(problem, tile, {.columns = tile.m}, device);
  const double exchange = 0.25 * static_cast<double>(tile.m * tile.n * 4) / model.exchange_bytes_per_cycle;
  const std::int64_t pairs = std::max<std::int64_t>(device.sm_count / 2, 1), waves = ceil_div(plan.tiling.tiles, pairs);
  const double block = 0.5 * (time.mmas + time.epilogue) + exchange;
  plan.predicted_s = warpgroup_seconds(problem, plan, cycles_of_waves(problem, waves, block, device), device);
  return plan;
}

}  // namespace

constinit const GemmKernel kOneWavePairedKKernel = on_hopper({.composition = {.kernel = "one_wave", .schedule = GemmSchedule::paired_k},
                                                              .tiles = kOneWavePairedKTiles,
                                                              .shared_bytes = one_wave_paired_k_shared_bytes,
                                                              .own_refusal = refuse,
                                                              .own_plan = plan,
                                                              .launch_cuda = cuda_launch<launch_one_wave_paired_k>()});

}  // namespace tilewave
