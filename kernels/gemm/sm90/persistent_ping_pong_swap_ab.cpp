// Model: every block's tiles one after another, each its products and by how much an epilogue that computes delays the next one's, or half
// of both where it goes element by element and takes longer; the last one stands alone, in one warpgroup, part by part. wgmma's rows run
// along M here.
#include "kernels/gemm/sm90/persistent_ping_pong_swap_ab.h"

#include "kernels/core/queue.h"
#include "kernels/gemm/facts/has_cuda.h"
#include "kernels/gemm/sm90/warpgroup_time.h"

namespace tilewave {
namespace {

std::string refuse(const GemmProblem& problem, const DeviceInfo& device) {
  const std::string refusal = refuse_swap_ab(problem, device);
  if (!refusal.empty()) return refusal;
  if (problem.b_major != Major::k) return "its columns come from rows of B along K; make B k-major.";
  const Epilogue& e = problem.epilogue;
  if (problem.output_dtype == DType::f32) return "it transposes sums in 16 bits, not in f32.";
  if (e.bias_gradient) return "it sums no bias gradient.";
  if (problem.d_alignment < 16) return "it stores whole 16 bytes: pad the pitch of D, and of what lies like it, to such.";
  return {};
}

GemmPlan plan(const GemmProblem& problem, Tile tile, const DeviceInfo& device, int) {
  GemmPlan plan = plan_stored_tiles(problem, tile, device.sm_count);
  const SwapAbForm form = swap_ab_form(problem);
  plan.stages = persistent_ping_pong_swap_ab_stages(tile, form);
  plan.raster.kind = RasterKind::bands;
  GemmPlan swapped = plan;  // pairs lie side by side along M, and share what lies along N
  std::swap(swapped.tile.m, swapped.tile.n);
  std::swap(swapped.tiling.tiles_m, swapped.tiling.tiles_n);
  const double rounds = plan_persistent(swapped, device);
  plan.cluster = swapped.cluster;
  plan.blocks = swapped.blocks;
  const int sides = problem.epilogue.passes() - 1, deferred_sides = has_store_warp(form) ? sides : 0;
  const WarpgroupTime time = warpgroup_time(
      problem, swapped.tile, {.columns = tile.n, .swapped = true, .cluster = plan.cluster, .deferred_sides = deferred_sides}, device);
  const CostModel& model = cost_model_of(device);
  const double under_mmas = time.mmas + model.turn_cycles + (time.deferred - model.packing_cycles);
  // Element by element, in one warpgroup, it takes longer than the other's products.
  const double elements = form == SwapAbForm::any && sides > 0 ? model.narrow_store_cycles + model.narrow_side_cycles * sides : 0.0;
  const double tile_cycles = std::max(under_mmas, 0.5 * (time.mmas + elements * static_cast<double>(tile.m * tile.n)));
  const double cycles = model.fill_cycles + rounds * tile_cycles + model.last_turn_cycles + time.epilogue;
  plan.predicted_s = warpgroup_seconds(problem, swapped, cycles, device);
  return plan;
}

}  // namespace

SwapAbForm swap_ab_form(const GemmProblem& problem) {
  const Epilogue& e = problem.epilogue;
  const bool activates = e.activation != Activation::none, derives = e.derivative != Activation::none;
  const int sides = (derives ? 1 : 0) + (e.residual ? 1 : 0) + (e.accumulate ? 1 : 0);
  if (problem.m % 8 != 0 || (e.saved_input && !activates) || sides > 1) return SwapAbForm::any;
  if (sides == 0) return activates ? SwapAbForm::activated : SwapAbForm::plain;
  return activates || (derives && e.bias) ? SwapAbForm::any : SwapAbForm::sided;
}

constinit const GemmKernel kPersistentPingPongSwapAbKernel =
    on_hopper({.composition = {.kernel = "persistent", .schedule = GemmSchedule::ping_pong, .swap_ab = true},
               .tiles = kPersistentPingPongSwapAbTiles,
               .shared_bytes = persistent_ping_pong_swap_ab_shared_bytes,
               .own_refusal = refuse,
               .own_plan = plan,
               .launch_cuda = cuda_launch<launch_persistent_ping_pong_swap_ab>()});

}  // namespace tilewave
