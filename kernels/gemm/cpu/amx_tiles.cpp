// Model: a thread's unit multiplies two tile registers in kProductCycles, at kEfficiency; packing takes kCyclesPerElement, and as much
// again where rows and steps of K change places; D, and what else the epilogue passes over, moves at kBytesPerCycle.
#include "kernels/gemm/cpu/amx_tiles.h"

#include "kernels/core/error.h"
#include "kernels/gemm/cost/cost_model.h"

namespace tilewave {
namespace {

constexpr double kProductCycles = 16.0;
constexpr double kEfficiency = 0.85;
constexpr double kCyclesPerElement = 0.6;
constexpr double kBytesPerCycle = 10.0;
constexpr double kCyclesPerTile = 500.0;
constexpr double kLaunchCycles = 1500.0;

std::string refuse(const GemmProblem& problem, const DeviceInfo&) {
  const bool tf32 = problem.operand_dtype == DType::f32 && problem.math == MathMode::tf32;
  if (problem.operand_dtype != DType::bf16 && !tf32) {
    return concat("it multiplies bf16 and, where math is tf32, f32; not ", name_of(problem.operand_dtype), " with ", name_of(problem.math),
                  " math.");
  }
  if (problem.output_dtype != DType::f32 && problem.output_dtype != problem.operand_dtype) {
    return concat("it stores f32 or the operands' type, ", name_of(problem.operand_dtype), ", not ", name_of(problem.output_dtype), ".");
  }
  if (!cpu_has_amx()) return "this CPU has no AMX, or the system does not let it be used.";
  return {};
}

GemmPlan plan(const GemmProblem& problem, Tile tile, const DeviceInfo& device, int) {
  GemmPlan plan = plan_tiles(problem, tile, device.sm_count);
  const AmxLayout layout(problem, tile);
  plan.workspace_bytes = layout.bytes(device.sm_count);
  const bool swapped = problem.d_major == Major::n;
  const TileGrid& grid = layout.grid;
  const std::int64_t i = grid.i, j = grid.j;
  const std::int64_t threads = problem.m * problem.n * problem.k < small_amx_product(problem.operand_dtype) ? 1 : device.sm_count;
  const std::int64_t registers = ceil_div(i, 16) * ceil_div(j, 16), steps = ceil_div(problem.k, kAmxSteps);
  const auto mmas = static_cast<double>(registers * steps * (layout.parts == 2 ? 3 : 1));
  const bool transposes_i = (swapped ? problem.b_major : problem.a_major) == Major::k;
  const bool transposes_j = (swapped ? problem.a_major : problem.b_major) != Major::k;
  const double packed = static_cast<double>(problem.k) *
                        static_cast<double>(i * grid.tiles_j() * (transposes_i ? 2 : 1) + j * grid.tiles_i() * (transposes_j ? 2 : 1));
  const double stored = static_cast<double>(i * j * size_of(problem.output_dtype) * problem.epilogue.passes());
  const double cycles = mmas * kProductCycles / kEfficiency + packed * kCyclesPerElement + stored / kBytesPerCycle +
                        kCyclesPerTile * static_cast<double>(plan.tiling.tiles);
  plan.predicted_s = seconds_of(kLaunchCycles + cycles * TileShares(grid, threads).largest_share(), device);
  return plan;
}

}  // namespace

const GemmKernel kAmxTilesKernel = {.composition = {.kernel = "amx_tiles"},
                                    .backend = Backend::cpu,
                                    .tiles = kAmxTiles,
                                    .own_refusal = refuse,
                                    .own_plan = plan,
                                    .launch_cpu = launch_amx_tiles};

}  // namespace tilewave
