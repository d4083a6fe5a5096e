// Model: every block's tiles one after another, each its products and by how much an epilogue that computes delays the next one's, or half
// of both where it goes element by element and takes longer; the last one stands alone, in one warpgroup, part by part. wgmma's rows run
// along M here.
#include "kernels/gemm/rows/transposed_ping_pong.h"

#include "kernels/core/queue.h"
#include "kernels/gemm/rows/warpgroup_time.h"

namespace tilewave {
namespace {

std::string refuse(const GemmProblem& problem, const DeviceInfo& device) {
  const std::string refusal = refuse_turned(problem, device);
  if (!refusal.empty()) return refusal;
  if (problem.b_major != Major::k) return "its columns come from rows of B along K; make B k-major.";
  const Epilogue& e = problem.epilogue;
  if (problem.output_dtype == DType::f32) return "it transposes sums in 16 bits, not in f32.";
  if (e.bias_gradient) return "it sums no bias gradient.";
  if (problem.d_alignment < 16) return "it stores whole 16 bytes: pad the pitch of D, and of what lies like it, to such.";
  return {};
}

GemmPlan plan(const GemmProblem& problem, Tile tile, const DeviceInfo& device, int) {
  GemmPlan plan = plan_stored_tiles("transposed_ping_pong", problem, tile, device.sm_count);
  const TurnedForm form = turned_form(problem);
  plan.stages = transposed_ping_pong_stages(tile, form);
  plan.raster = "bands";
  GemmPlan turned = plan;  // pairs lie side by side along M, and share what lies along N
  std::swap(turned.tile.m, turned.tile.n);
  std::swap(turned.tiling.tiles_m, turned.tiling.tiles_n);
  const double rounds = plan_turns(turned, device);
  plan.cluster = turned.cluster;
  plan.blocks = turned.blocks;
  const int sides = problem.epilogue.passes() - 1, late_sides = fills_slots(form) ? sides : 0;
  const WarpgroupTime time = warpgroup_time(problem, turned.tile, {.columns = tile.n, .own_loop = true, .late_sides = late_sides}, device);
  const TimeModel& model = time_model_of(device);
  const double under_products = time.products + model.turn_cycles + (time.late - model.packing_cycles);
  // Element by element, in one warpgroup, it takes longer than the other's products.
  const double elements = form == TurnedForm::any && sides > 0 ? model.narrow_store_cycles + model.narrow_side_cycles * sides : 0.0;
  const double turn = std::max(under_products, 0.5 * (time.products + elements * static_cast<double>(tile.m * tile.n)));
  const double cycles = model.fill_cycles + rounds * turn + model.last_turn_cycles + time.epilogue;
  plan.predicted_s = warpgroup_seconds(problem, turned, cycles, device);
  return plan;
}

constexpr CudaGemmLaunch cuda_launch() {
  if constexpr (kHasCuda) return launch_transposed_ping_pong;
  return nullptr;
}

}  // namespace

TurnedForm turned_form(const GemmProblem& problem) {
  const Epilogue& e = problem.epilogue;
  const bool activates = e.activation != Activation::none, derives = e.derivative != Activation::none;
  const int sides = (derives ? 1 : 0) + (e.residual ? 1 : 0) + (e.accumulate ? 1 : 0);
  if (problem.m % 8 != 0 || (e.saved_input && !activates) || sides > 1) return TurnedForm::any;
  if (sides == 0) return activates ? TurnedForm::activated : TurnedForm::plain;
  return activates || (derives && e.bias) ? TurnedForm::any : TurnedForm::sided;
}

const GemmRow kTransposedPingPongRow = {.name = "transposed_ping_pong",
                                        .backend = Backend::cuda,
                                        .tensor_cores = true,
                                        .tiles = kTransposedPingPongTiles,
                                        .shared_bytes = transposed_ping_pong_shared_bytes,
                                        .own_refusal = refuse,
                                        .plan = plan,
                                        .launch_cuda = cuda_launch()};

}  // namespace tilewave
