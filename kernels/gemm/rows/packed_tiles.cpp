// Model: two FMA ports a thread run the register tiles, edges of a panel included, at kEfficiency of their peak; packing
// and the epilogue move bytes at kBytesPerCycle, a macro tile's panels come from the second-level cache once a tile; all of
// it shared out over the threads with the efficiency of the tiles' waves.
#include "kernels/gemm/rows/packed_tiles.h"

#include "kernels/error.h"

namespace tilewave {
namespace {

constexpr double kEfficiency = 0.9;
constexpr double kBytesPerCycle = 12.0;
constexpr double kPanelBytesPerCycle = 32.0;
constexpr double kCyclesPerTile = 500.0;
constexpr double kLaunchCycles = 1000.0;

std::string refuse(const GemmProblem& problem, const DeviceInfo&) {
  if (problem.operand_dtype != DType::f32 && problem.operand_dtype != DType::f64) {
    return sentence("it multiplies f32 and f64, not ", name_of(problem.operand_dtype), ".");
  }
  if (problem.output_dtype != problem.operand_dtype) {
    return sentence("its output has the operands' type, ", name_of(problem.operand_dtype), ", not ", name_of(problem.output_dtype), ".");
  }
  return {};
}

GemmPlan plan(const GemmProblem& problem, Tile tile, const DeviceInfo& device) {
  GemmPlan plan = plan_tiles("packed_tiles", problem, tile, device.sm_count);
  const PackedLayout layout(problem, tile);
  const std::int64_t size = size_of(problem.operand_dtype);
  plan.workspace_bytes = layout.elements(device.sm_count) * size;

  const std::int64_t vector_bytes = std::max(device.vector_bytes, std::int64_t{16}), lanes = vector_bytes / size;
  const auto [i, j] = problem.d_major == Major::m ? std::pair(problem.m, problem.n) : std::pair(problem.n, problem.m);
  const std::int64_t step_j = std::min<std::int64_t>(4, packed_register_tile(vector_bytes).columns);
  const auto cycles = [](std::int64_t amount, double per_cycle) { return static_cast<double>(amount) / per_cycle; };
  const double arithmetic = cycles(round_up(i, lanes) * round_up(j, step_j) * problem.k, kEfficiency * 2.0 * static_cast<double>(lanes));
  const double packing = cycles(2 * size * (i + j) * problem.k, kBytesPerCycle);
  const double panels = cycles(size * problem.k * plan.tiling.tiles * (tile.m + tile.n), kPanelBytesPerCycle);
  const double epilogue = cycles(size * problem.m * problem.n * problem.epilogue.passes(), kBytesPerCycle);
  const double tiles = kCyclesPerTile * static_cast<double>(plan.tiling.tiles);
  const auto threads = static_cast<double>(device.sm_count);
  plan.predicted_s = seconds_of(
      kLaunchCycles + packing / threads + (arithmetic + panels + epilogue + tiles) / (threads * plan.tiling.wave_efficiency), device);
  return plan;
}

}  // namespace

const GemmRow kPackedTilesRow = {.name = "packed_tiles",
                                 .backend = Backend::cpu,
                                 .tiles = kPackedTiles,
                                 .refuse = refuse,
                                 .plan = plan,
                                 .launch_cpu = launch_packed_tiles};

}  // namespace tilewave
