// Model: every block's tiles one after another, each its products, and by how much packing its sums and finishing them under the next
// one's products delays those; the last tile's epilogue stands alone, and so do D's last columns.
#include "kernels/gemm/sm90/persistent_deferred_store.h"

#include <algorithm>

#include "kernels/gemm/cost/cost_model.h"
#include "kernels/gemm/sm90/warpgroup_time.h"

namespace tilewave {

std::string refuse_deferred_store(const GemmProblem& problem, const DeviceInfo& device) {
  const std::string refusal = refuse_warpgroup(problem, device);
  if (!refusal.empty()) return refusal;
  if (problem.output_dtype == DType::f32) return "a thread can keep a tile's sums for later in 16 bits, not in f32.";
  const Epilogue& e = problem.epilogue;
  if (e.residual || e.accumulate) return "it adds nothing to sums that are packed in 16 bits.";
  if (e.bias_gradient) return "it sums no bias gradient.";
  if (e.activation == Activation::gelu_erf) return "its main loop has no room for the error function.";
  if (e.activation == Activation::none) return e.saved_input ? "it stores an activation's input beside what comes of it." : "";
  if (problem.a_major != Major::k || problem.b_major != Major::k || problem.d_major != Major::m)
    return "it finishes activations where operands lie as a forward's.";
  if (problem.d_alignment < 16 || problem.m % 8 != 0)
    return "it finishes whole 16 bytes: pad rows and pitch of D, and of what lies like it, to such.";
  return {};
}

GemmPlan plan_deferred_store(const GemmProblem& whole_problem, Tile tile, const DeviceInfo& device) {
  const std::int64_t last_columns = deferred_store_last_columns(whole_problem);
  GemmProblem problem = whole_problem;
  problem.m -= last_columns;
  GemmPlan plan = plan_stored_tiles(problem, tile, device.sm_count);
  plan.stages = deferred_store_stages(tile);
  plan.raster.kind = RasterKind::bands;
  // Rows of D that do not begin and end on 16 bytes leave element by element.
  const std::int64_t row_bytes = (problem.d_major == Major::m ? problem.m : problem.n) * size_of(problem.output_dtype);
  const bool whole = problem.d_alignment >= 16 && row_bytes % 16 == 0;
  const double rounds = plan_persistent(plan, device, whole ? Pairs::where_they_gain : Pairs::no);
  const int deferred_sides = problem.epilogue.saved_input ? 1 : 0;
  const WarpgroupTime time = warpgroup_time(
      problem, tile, {.columns = tile.m, .cluster = plan.cluster, .deferred_stores = true, .deferred_sides = deferred_sides}, device);
  const CostModel& model = cost_model_of(device);
  const double narrow = whole ? 0.0 : 0.5 * static_cast<double>(tile.m * tile.n) * model.narrow_store_cycles;
  const double cycles = model.fill_cycles + rounds * (time.mmas + time.deferred + narrow) + time.epilogue;
  plan.predicted_s = warpgroup_seconds(problem, plan, cycles, device);
  if (last_columns > 0) {
    plan.predicted_s += seconds_of({.read_bytes = static_cast<double>(problem.n * problem.k * size_of(problem.operand_dtype))}, device);
  }
  return plan;
}

std::int64_t deferred_store_last_columns(const GemmProblem& problem) {
  const bool as_forward = problem.a_major == Major::k && problem.b_major == Major::k && problem.d_major == Major::m;
  const bool sums = problem.epilogue == Epilogue{} && problem.d_alignment >= 16;
  return as_forward && sums && problem.m > 8 ? problem.m % 8 : 0;
}

}  // namespace tilewave
