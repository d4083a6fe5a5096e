// What the rows on Hopper's Tensor Cores refuse, and how their tiles are shared out.
#include "kernels/gemm/sm90/warpgroup.h"

#include <algorithm>
#include <limits>

#include "kernels/core/error.h"

namespace tilewave {

std::string refuse_beyond_coordinates(const GemmProblem& problem) {
  const std::int64_t longest = std::max({problem.m, problem.n, problem.k});
  if (longest <= std::numeric_limits<int>::max() - 4096) return {};
  return concat("a dimension of ", longest, " does not fit TMA's 32-bit coordinates.");
}

std::string refuse_warpgroup(const GemmProblem& problem, const DeviceInfo& device) {
  if (device.capability != 90) {
    return concat("it uses wgmma and TMA of compute capability 9.0; this device has ", device.capability / 10, ".", device.capability % 10,
                  ".");
  }
  if (problem.operand_dtype != DType::bf16 && problem.operand_dtype != DType::f16) {
    return concat("its tensor cores take bf16 and f16 in either major, not ", name_of(problem.operand_dtype), ".");
  }
  if (problem.output_dtype != problem.operand_dtype && problem.output_dtype != DType::f32) {
    return concat("it writes the operands' type or f32, not ", name_of(problem.output_dtype), ".");
  }
  if (problem.d_major != Major::m && problem.epilogue.bias_gradient) {
    return "it sums B over K where B's rows run along D's in memory; make D m-major, or ask for the bias gradient elsewhere.";
  }
  const std::string too_long = refuse_beyond_coordinates(problem);
  if (!too_long.empty()) return too_long;
  const auto unaligned = [](const char* name, std::int64_t alignment, std::int64_t pitch) {
    return concat("TMA wants base and pitch of ", name, " in multiples of 16 bytes; its pitch of ", pitch, " elements and its base allow ",
                  alignment, ": use guidelines.row_pitch = \"aligned\".");
  };
  if (problem.a_alignment < 16) return unaligned("A", problem.a_alignment, problem.a_pitch);
  if (problem.b_alignment < 16) return unaligned("B", problem.b_alignment, problem.b_pitch);
  return {};
}

std::string refuse_adding_alone(const GemmProblem& problem, const DeviceInfo& device) {
  const std::string refusal = refuse_warpgroup(problem, device);
  if (!refusal.empty()) return refusal;
  Epilogue others = problem.epilogue;
  others.bias_gradient = others.accumulate = false;
  if (others != Epilogue{}) return "its blocks add up sums and no more; this problem has an epilogue.";
  if (problem.epilogue.accumulate && problem.output_dtype != DType::f32) return "it accumulates in f32 alone.";
  return {};
}

std::string refuse_swap_ab(const GemmProblem& problem, const DeviceInfo& device) {
  const std::string refusal = refuse_warpgroup(problem, device);
  if (!refusal.empty()) return refusal;
  if (problem.d_major != Major::m) return "its tiles lie along rows of D, not along columns; make D m-major.";
  return {};
}

bool stores_accumulators(const GemmProblem& problem) {
  const Epilogue& e = problem.epilogue;
  return !e.bias && !e.saved_input && !e.residual && e.activation == Activation::none && e.derivative == Activation::none &&
         (!e.accumulate || problem.output_dtype == DType::f32);
}

bool makes_gradient(const GemmProblem& problem) {
  return problem.a_major == Major::m && problem.b_major == Major::n && problem.d_alignment >= 16 && stores_accumulators(problem);
}

bool makes_whole_gradient(const GemmProblem& problem) {
  const std::int64_t columns = problem.d_major == Major::m ? problem.m : problem.n;
  return makes_gradient(problem) && columns * size_of(problem.output_dtype) % 16 == 0;
}

bool assigns_tiles(const GemmProblem& problem, std::int64_t blocks, const DeviceInfo& device) {
  if (problem.a_major != Major::m || problem.b_major != Major::n || problem.epilogue.bias_gradient) return false;
  return blocks <= device.sm_count && 2 * blocks > device.sm_count;
}

std::vector<int> gpc_order(const Tiling& tiling, Tile tile) {
  const std::int64_t patch = gpc_columns(tile), rows = tile.m >= tile.n ? 2 : 1;  // at once
  std::vector<int> order;
  for (std::int64_t first_m = 0; first_m < tiling.tiles_m; first_m += patch) {
    for (std::int64_t first_n = 0; first_n < tiling.tiles_n; first_n += rows) {
      for (std::int64_t m = first_m; m < std::min(first_m + patch, tiling.tiles_m); ++m) {
        for (std::int64_t n = first_n; n < std::min(first_n + rows, tiling.tiles_n); ++n) {
          order.push_back(static_cast<int>(n * tiling.tiles_m + m));
        }
      }
    }
  }
  return order;
}

double plan_persistent(GemmPlan& plan, const DeviceInfo& device, Pairs pairs) {
  const Tiling& tiling = plan.tiling;
  const auto cluster_tiles = [&](std::int64_t cluster) { return tiling.tiles_m * ceil_div(tiling.tiles_n, cluster); };
  const auto rounds = [&](std::int64_t cluster) { return ceil_div(cluster_tiles(cluster), device.sm_count / cluster); };
  const bool several = device.sm_count > 1 && tiling.waves > 2.0 && (tiling.tiles_n % 2 == 0 || tiling.tiles_n > 16);
  plan.cluster = pairs == Pairs::where_they_gain && several && rounds(2) <= rounds(1) ? 2 : 1;
  plan.blocks = std::min(cluster_tiles(plan.cluster), device.sm_count / plan.cluster) * plan.cluster;
  return static_cast<double>(rounds(plan.cluster));
}

}  // namespace tilewave
