// Model: two FMA ports a thread run the register tiles, ragged panels included, at kEfficiency of their peak at the clock that the
// system names; each tile packs panels, moves the sums that wait between kc blocks and finishes outputs at kBytesPerCycle; panels along
// i come at kStreamedBytesPerCycle where they outgrow kSecondLevelShare of the second-level cache, and rather slower, by
// kInPlaceBytesPerCycle, where they are not packed. The thread that takes most of the tiles decides. Each thread has its share of the
// tokens in its own caches (kernels/cpu/core/thread_pool.h): those of another thread come from there at kRemoteBytesPerCycle.
#include "kernels/gemm/cpu/packed_tiles.h"

#include <array>

#include "kernels/core/error.h"
#include "kernels/gemm/cost/cost_model.h"

namespace tilewave {
namespace {

constexpr double kEfficiency = 0.95;
constexpr double kBytesPerCycle = 10.0;
constexpr double kStreamedBytesPerCycle = 8.0;
constexpr double kInPlaceBytesPerCycle = 100.0;
constexpr double kRemoteBytesPerCycle = 7.0;
constexpr double kSecondLevelShare = 0.5;
constexpr double kCyclesPerTile = 500.0;
constexpr double kLaunchCycles = 1000.0;

std::string refuse(const GemmProblem& problem, const DeviceInfo&) {
  if (problem.operand_dtype != DType::f32 && problem.operand_dtype != DType::f64) {
    return concat("it multiplies f32 and f64, not ", name_of(problem.operand_dtype), ".");
  }
  if (problem.output_dtype != problem.operand_dtype) {
    return concat("its output has the operands' type, ", name_of(problem.operand_dtype), ", not ", name_of(problem.output_dtype), ".");
  }
  return {};
}

GemmPlan unpredicted_plan(const GemmProblem& problem, Tile tile, const DeviceInfo& device) {
  GemmPlan plan = plan_tiles(problem, tile, device.sm_count);
  const PackedLayout layout(problem, tile);
  plan.split = static_cast<int>(layout.grid.parts);
  plan.blocks = layout.grid.tiles();
  plan.workspace_bytes = layout.elements(device.sm_count) * size_of(problem.operand_dtype);
  return plan;
}

GemmPlan plan(const GemmProblem& problem, Tile tile, const DeviceInfo& device, int) {
  GemmPlan plan = unpredicted_plan(problem, tile, device);
  const PackedLayout layout(problem, tile);
  const TileGrid& grid = layout.grid;
  const std::int64_t size = size_of(problem.operand_dtype), k = ceil_div(problem.k, grid.parts);
  const std::int64_t vector_bytes = std::max(device.vector_bytes, std::int64_t{16}), lanes = vector_bytes / size;
  const RegisterTile registers = packed_register_tile(vector_bytes);
  const std::int64_t step_j = registers.columns > 4 ? 1 : registers.columns;
  const std::int64_t threads = problem.m * problem.n * problem.k < kSmallPackedProduct ? 1 : device.sm_count;
  const bool tokens_are_k = runs_over_tokens(problem), tokens_along_i = problem.d_major == Major::n;
  const std::int64_t shares = tokens_are_k ? grid.parts : plan.tiling.tiles_n;  // of the tokens
  const double remote = 1.0 - static_cast<double>(std::min(shares, threads)) / static_cast<double>(threads);
  const auto cycles = [](std::int64_t amount, double per_cycle) { return static_cast<double>(amount) / per_cycle; };
  const bool resident = device.l2_bytes == 0 || static_cast<double>(std::min(grid.tile_i, grid.i) * layout.block_k * size) <=
                                                    kSecondLevelShare * static_cast<double>(device.l2_bytes);
  const auto of_a_tile = [&](std::int64_t rows, std::int64_t columns) {
    const std::int64_t outputs = rows * columns, packed = (layout.reads_i ? 0 : rows) + (layout.reads_j ? 0 : columns);
    const std::int64_t of_tokens = tokens_are_k ? (rows + columns) * k : (tokens_along_i ? rows : columns) * k + outputs;
    const std::int64_t streamed = size * rows * ceil_div(columns, registers.columns) * k, waiting = 2 * outputs * (layout.kc_blocks - 1);
    const std::int64_t finished = outputs * (grid.parts > 1 ? 2 : problem.epilogue.passes());
    return cycles(round_up(rows, lanes) * round_up(columns, step_j) * k, kEfficiency * 2.0 * static_cast<double>(lanes)) +
           cycles(size * (2 * packed * k + waiting + finished), kBytesPerCycle) + remote * cycles(size * of_tokens, kRemoteBytesPerCycle) +
           (layout.reads_i ? cycles(streamed, kInPlaceBytesPerCycle)
            : resident     ? 0.0
                           : cycles(streamed, kStreamedBytesPerCycle)) +
           kCyclesPerTile;
  };
  const TileShares tiles(grid, threads);
  std::array<double, TileShares::kKinds> costs{};
  for (std::size_t kind = 0; kind < costs.size(); ++kind) costs[kind] = of_a_tile(tiles.kinds()[kind].rows, tiles.kinds()[kind].columns);
  plan.predicted_s = seconds_of(kLaunchCycles + tiles.largest(costs), device);
  return plan;
}

}  // namespace

const GemmKernel kPackedTilesKernel = {.composition = {.kernel = "packed_tiles"},
                                       .backend = Backend::cpu,
                                       .tiles = kPackedTiles,
                                       .own_refusal = refuse,
                                       .own_plan = plan,
                                       .own_unpredicted_plan = unpredicted_plan,
                                       .launch_cpu = launch_packed_tiles};

}  // namespace tilewave
