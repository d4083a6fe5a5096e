// Model: every block's tiles one after another, each its products and the time in which its sums are handed over, or its epilogue where
// that is longer; the consumers finish the last tile, where nothing else runs.
#include "kernels/gemm/rows/persistent_epilogue_warps.h"

#include <algorithm>

#include "kernels/gemm/rows/warpgroup_time.h"
#include "kernels/queue.h"

namespace tilewave {
namespace {

std::string refuse(const GemmProblem& problem, const DeviceInfo& device) {
  const std::string refusal = refuse_warpgroup(problem, device);
  if (!refusal.empty()) return refusal;
  const Epilogue& e = problem.epilogue;
  if (e.derivative == Activation::none) return "it multiplies sums by an activation's derivative.";
  if (e.bias || e.activation != Activation::none || e.saved_input || e.residual || e.accumulate || e.bias_gradient)
    return "beside a derivative it finishes nothing.";
  if (problem.output_dtype == DType::f32) return "sums are handed over in 16 bits, not in f32.";
  if (problem.a_major != Major::m || problem.b_major != Major::k || problem.d_major != Major::m)
    return "it reads operands that lie as a dgrad's.";
  if (problem.d_alignment < 16 || problem.m % 8 != 0)
    return "it finishes whole 16 bytes: pad rows and pitch of D, and of what lies like it, to such.";
  return {};
}

GemmPlan plan(const GemmProblem& problem, Tile tile, const DeviceInfo& device, int) {
  // Measured on an H200, in cycles of its highest clock an element of a tile: what the products take longer beside three or seven warps
  // that finish the tile before, and what those take at least.
  constexpr double kHandingToThree = 0.25, kHandingToSeven = 0.17, kFinishingOfThree = 0.76, kFinishingOfSeven = 0.36;
  GemmPlan plan = plan_stored_tiles("persistent_epilogue_warps", problem, tile, device.sm_count);
  plan.stages = epilogue_warps_stages(tile);
  plan.raster = "bands";
  plan.blocks = std::min(plan.tiling.tiles, device.sm_count);
  const WarpgroupTime time = warpgroup_time(problem, tile, {.columns = tile.m, .own_loop = true}, device);
  const auto rounds = static_cast<double>(ceil_div(plan.tiling.tiles, device.sm_count));
  const auto elements = static_cast<double>(tile.m * tile.n);
  const bool three = epilogue_warps_others(tile) == 1;
  const double handing = elements * (three ? kHandingToThree : kHandingToSeven);
  const double finishing = elements * (three ? kFinishingOfThree : kFinishingOfSeven);
  const double cycles = time_model_of(device).fill_cycles + rounds * std::max(time.products + handing, finishing) + time.epilogue;
  plan.predicted_s = warpgroup_seconds(problem, plan, cycles, device);
  return plan;
}

constexpr CudaGemmLaunch cuda_launch() {
  if constexpr (kHasCuda) return launch_persistent_epilogue_warps;
  return nullptr;
}

}  // namespace

const GemmRow kPersistentEpilogueWarpsRow = {.name = "persistent_epilogue_warps",
                                             .backend = Backend::cuda,
                                             .tensor_cores = true,
                                             .tiles = kPersistentEpilogueWarpsTiles,
                                             .shared_bytes = persistent_epilogue_warps_shared_bytes,
                                             .own_refusal = refuse,
                                             .plan = plan,
                                             .launch_cuda = cuda_launch()};

}  // namespace tilewave
