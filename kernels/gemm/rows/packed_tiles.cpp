// Model: two FMA ports a thread run the register tiles, ragged panels included, at kEfficiency of their peak at the clock that the
// system names; each tile packs its panels along i, and those along j that cannot be read where they lie, at kBytesPerCycle, and
// streams its panels along i from the next cache where they outgrow kSecondLevelShare of the second level; the epilogue moves
// bytes at kBytesPerCycle. Threads share tiles out, so that the last wave counts as a whole one. Each thread has its share of the
// tokens in its own caches (kernels/cpu/thread_pool.h): those of another thread come from there at kRemoteBytesPerCycle.
#include "kernels/gemm/rows/packed_tiles.h"

#include "kernels/error.h"

namespace tilewave {
namespace {

constexpr double kEfficiency = 0.98;
constexpr double kBytesPerCycle = 10.0;
constexpr double kStreamedBytesPerCycle = 8.0;
constexpr double kRemoteBytesPerCycle = 7.0;
constexpr double kSecondLevelShare = 0.5;
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

GemmPlan unpredicted_plan(const GemmProblem& problem, Tile tile, const DeviceInfo& device) {
  GemmPlan plan = plan_tiles("packed_tiles", problem, tile, device.sm_count);
  const PackedLayout layout(problem, tile);
  plan.split = static_cast<int>(layout.parts);
  plan.blocks = plan.tiling.tiles * layout.parts;
  plan.workspace_bytes = layout.elements(device.sm_count) * size_of(problem.operand_dtype);
  return plan;
}

GemmPlan plan(const GemmProblem& problem, Tile tile, const DeviceInfo& device, int) {
  GemmPlan plan = unpredicted_plan(problem, tile, device);
  const PackedLayout layout(problem, tile);
  const std::int64_t size = size_of(problem.operand_dtype);
  const std::int64_t vector_bytes = std::max(device.vector_bytes, std::int64_t{16}), lanes = vector_bytes / size;
  const bool swapped = problem.d_major == Major::n;
  const std::int64_t i = swapped ? problem.n : problem.m, j = swapped ? problem.m : problem.n;
  const RegisterTile registers = packed_register_tile(vector_bytes);
  const std::int64_t tile_i = std::min(layout.tile_i, i), tile_j = std::min(layout.tile_j, j);
  const std::int64_t tiles_i = ceil_div(i, tile_i), tiles_j = ceil_div(j, tile_j);
  const std::int64_t threads = problem.m * problem.n * problem.k < kSmallPackedProduct ? 1 : device.sm_count;
  const bool reads_j = (swapped ? problem.a_major : problem.b_major) == Major::k;
  const std::int64_t shares = runs_over_tokens(problem) ? layout.parts : plan.tiling.tiles_n;  // of the tokens
  const double remote = 1.0 - static_cast<double>(std::min(shares, threads)) / static_cast<double>(threads);
  const auto cycles = [](std::int64_t amount, double per_cycle) { return static_cast<double>(amount) / per_cycle; };
  // Of `rows` by `columns` outputs in so many tiles along each.
  const auto work = [&](std::int64_t rows, std::int64_t columns, std::int64_t along_i, std::int64_t along_j) {
    const std::int64_t step_j = registers.columns > 4 ? 1 : registers.columns;
    const std::int64_t packed = rows * along_j + (reads_j ? 0 : columns * along_i);
    const std::int64_t of_tokens = runs_over_tokens(problem) ? (rows * along_j + columns * along_i) * problem.k
                                                             : (swapped ? rows * along_j : columns * along_i) * problem.k + rows * columns;
    const bool resident = device.l2_bytes == 0 ||
                          static_cast<double>(tile_i * layout.block_k * size) <= kSecondLevelShare * static_cast<double>(device.l2_bytes);
    return cycles(round_up(rows, lanes) * round_up(columns, step_j) * problem.k, kEfficiency * 2.0 * static_cast<double>(lanes)) +
           cycles(2 * size * packed * problem.k, kBytesPerCycle) + remote * cycles(size * of_tokens, kRemoteBytesPerCycle) +
           (resident ? 0.0 : cycles(size * rows * ceil_div(columns, registers.columns) * problem.k, kStreamedBytesPerCycle)) +
           cycles(size * rows * columns * (layout.parts > 1 ? 2 * layout.parts : problem.epilogue.passes()), kBytesPerCycle) +
           kCyclesPerTile * static_cast<double>(along_i * along_j * layout.parts);
  };
  // Whole tiles first, in rounds; then the ragged ones, unless a last round of whole tiles outlasts them.
  const auto parts = static_cast<double>(layout.parts);
  const std::int64_t whole = (i / tile_i) * (j / tile_j) * layout.parts, rounds = whole / threads;
  const double a_whole_tile = work(tile_i, tile_j, 1, 1) / parts;
  const double a_ragged_tile = std::max(work(i % tile_i, tile_j, 1, 1), work(tile_i, j % tile_j, 1, 1)) / parts;
  const double last = whole % threads != 0 ? a_whole_tile : whole < tiles_i * tiles_j * layout.parts ? a_ragged_tile : 0.0;
  const double shared = work(i, j, tiles_i, tiles_j) / static_cast<double>(threads);
  plan.predicted_s = seconds_of(kLaunchCycles + std::max(shared, static_cast<double>(rounds) * a_whole_tile + last), device);
  return plan;
}

}  // namespace

const GemmRow kPackedTilesRow = {.name = "packed_tiles",
                                 .backend = Backend::cpu,
                                 .tiles = kPackedTiles,
                                 .own_refusal = refuse,
                                 .plan = plan,
                                 .unpredicted_plan = unpredicted_plan,
                                 .launch_cpu = launch_packed_tiles};

}  // namespace tilewave
