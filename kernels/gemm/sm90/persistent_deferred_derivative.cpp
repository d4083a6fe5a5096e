// Model: that of persistent_deferred_store, whose tiles' sums meet a derivative on their way.
#include "kernels/gemm/sm90/persistent_deferred_derivative.h"

#include <algorithm>

#include "kernels/gemm/sm90/warpgroup_time.h"

namespace tilewave {
namespace {

constexpr std::int64_t kMinK = (deferred_derivative_min_k_tiles({256, 128}) - 1) * kKTile + 1;
static_assert(deferred_derivative_min_k_tiles({256, 128}) >= deferred_derivative_min_k_tiles({128, 128}));

}  // namespace

std::string refuse_deferred_derivative(const GemmProblem& problem, const DeviceInfo& device) {
  const std::string refusal = refuse_warpgroup(problem, device);
  if (!refusal.empty()) return refusal;
  const Epilogue& e = problem.epilogue;
  if (e.derivative != Activation::relu) return "GELU's derivative would take longer than the products that it runs under.";
  if (e.bias || e.activation != Activation::none || e.saved_input || e.residual || e.accumulate || e.bias_gradient)
    return "beside a derivative it finishes nothing.";
  if (problem.output_dtype == DType::f32) return "a thread can keep a tile's sums for later in 16 bits, not in f32.";
  if (problem.a_major != Major::m || problem.b_major != Major::k || problem.d_major != Major::m)
    return "it reads operands that lie as a dgrad's.";
  if (problem.d_alignment < 16 || problem.m % 8 != 0)
    return "it finishes whole 16 bytes: pad rows and pitch of D, and of what lies like it, to such.";
  if (problem.k < kMinK) return "a tile's results leave under the next one's products, which are too few where K is below 449.";
  return {};
}

GemmPlan plan_deferred_derivative(const GemmProblem& problem, Tile tile, const DeviceInfo& device) {
  GemmPlan plan = plan_stored_tiles(problem, tile, device.sm_count);
  plan.stages = deferred_derivative_stages(tile);
  plan.raster.kind = RasterKind::bands;
  plan.blocks = std::min(plan.tiling.tiles, device.sm_count);
  const WarpgroupTime time = warpgroup_time(problem, tile, {.columns = tile.m, .cluster = plan.cluster, .deferred_stores = true}, device);
  const auto rounds = static_cast<double>(ceil_div(plan.tiling.tiles, device.sm_count));
  const double cycles = cost_model_of(device).fill_cycles + rounds * (time.mmas + time.deferred) + time.epilogue;
  plan.predicted_s = warpgroup_seconds(problem, plan, cycles, device);
  return plan;
}

}  // namespace tilewave
