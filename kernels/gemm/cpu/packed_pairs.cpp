// Model: two ports a thread each multiply a register of pairs in two cycles, at kEfficiency; packing takes kCyclesPerElement,
// an output's epilogue kCyclesPerOutput and as much again for each further pass.
#include "kernels/gemm/cpu/packed_pairs.h"

#include "kernels/core/error.h"
#include "kernels/gemm/cost/cost_model.h"

namespace tilewave {
namespace {

constexpr double kEfficiency = 0.8;
constexpr double kCyclesPerElement = 1.5;
constexpr double kCyclesPerOutput = 4.0;
constexpr double kLaunchCycles = 1000.0;

std::string refuse(const GemmProblem& problem, const DeviceInfo&) {
  if (problem.operand_dtype != DType::bf16) return concat("it multiplies bf16, not ", name_of(problem.operand_dtype), ".");
  if (problem.output_dtype != DType::bf16 && problem.output_dtype != DType::f32) {
    return concat("its output is bf16 or f32, not ", name_of(problem.output_dtype), ".");
  }
  if (!cpu_multiplies_bf16_pairs()) return "this CPU has no AVX512-BF16.";
  return {};
}

GemmPlan plan(const GemmProblem& problem, Tile tile, const DeviceInfo& device, int) {
  GemmPlan plan = plan_tiles(problem, tile, device.sm_count);
  const PairsLayout layout(problem, tile);
  plan.workspace_bytes = layout.bytes(device.sm_count);
  const TileGrid& grid = layout.grid;
  const std::int64_t i = grid.i, j = grid.j;
  const double arithmetic = static_cast<double>(round_up(i, 16) * round_up(j, 4) * layout.pairs) / (16.0 * kEfficiency);
  const double packing = kCyclesPerElement * static_cast<double>(problem.k * (i * grid.tiles_j() + j * grid.tiles_i()));
  const double epilogue = kCyclesPerOutput * static_cast<double>(i * j * problem.epilogue.passes());
  plan.predicted_s =
      seconds_of(kLaunchCycles + (arithmetic + packing + epilogue) * TileShares(grid, device.sm_count).largest_share(), device);
  return plan;
}

}  // namespace

const GemmKernel kPackedPairsKernel = {.composition = {.kernel = "packed_pairs"},
                                       .backend = Backend::cpu,
                                       .tiles = kPackedPairsTiles,
                                       .own_refusal = refuse,
                                       .own_plan = plan,
                                       .launch_cpu = launch_packed_pairs};

}  // namespace tilewave
