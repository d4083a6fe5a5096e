// Two epilogues that no problem has both of: results that are stored, with a bias or an activation, and those of ReLU's derivative.
// Model: every block's tiles one after another, each its products, and by how much packing its sums and finishing them under the next
// one's products delays those; the last tile's epilogue stands alone, and so do D's last columns.
#include "kernels/gemm/sm90/persistent_deferred.h"

#include <algorithm>

#include "kernels/core/queue.h"
#include "kernels/gemm/facts/has_cuda.h"
#include "kernels/gemm/sm90/warpgroup_time.h"

namespace tilewave {
namespace {

constexpr std::int64_t kMinK = (deferred_derivative_min_k_tiles({256, 128}) - 1) * kKTile + 1;
static_assert(deferred_derivative_min_k_tiles({256, 128}) >= deferred_derivative_min_k_tiles({128, 128}));

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

bool derives(const GemmProblem& problem) { return problem.epilogue.derivative != Activation::none; }

bool has_derivative_tile(Tile tile) { return std::ranges::count(kPersistentDeferredDerivativeTiles, tile) > 0; }

bool suits(const GemmProblem& problem, Tile tile) { return !derives(problem) || has_derivative_tile(tile); }

std::string refuse(const GemmProblem& problem, const DeviceInfo& device) {
  return derives(problem) ? refuse_deferred_derivative(problem, device) : refuse_deferred_store(problem, device);
}

GemmPlan plan(const GemmProblem& problem, Tile tile, const DeviceInfo& device, int) {
  return derives(problem) ? plan_deferred_derivative(problem, tile, device) : plan_deferred_store(problem, tile, device);
}

}  // namespace

std::int64_t deferred_store_last_columns(const GemmProblem& problem) {
  const bool as_forward = problem.a_major == Major::k && problem.b_major == Major::k && problem.d_major == Major::m;
  const bool sums = problem.epilogue == Epilogue{} && problem.d_alignment >= 16;
  return as_forward && sums && problem.m > 8 ? problem.m % 8 : 0;
}

std::int64_t persistent_deferred_shared_bytes(Tile tile) {
  return std::max(persistent_deferred_store_shared_bytes(tile),
                  has_derivative_tile(tile) ? persistent_deferred_derivative_shared_bytes(tile) : 0);
}

constinit const GemmKernel kPersistentDeferredKernel =
    on_hopper({.composition = {.kernel = "persistent", .epilogue = EpilogueTiming::deferred},
               .tiles = kPersistentDeferredStoreTiles,
               .suits = suits,
               .shared_bytes = persistent_deferred_shared_bytes,
               .own_refusal = refuse,
               .own_plan = plan,
               .launch_cuda = cuda_launch<launch_persistent_deferred>()});

}  // namespace tilewave
