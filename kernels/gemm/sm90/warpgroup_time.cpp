// From a problem and a tile to cycles, and from a schedule of them to seconds.
#include "kernels/gemm/sm90/warpgroup_time.h"

#include <algorithm>
#include <cmath>

#include "kernels/gemm/facts/residues.h"

namespace tilewave {
namespace {

// Whether it takes instructions to speak of.
double costs(Activation activation) { return activation == Activation::none || activation == Activation::relu ? 0.0 : 1.0; }

// A tile's MMAs, were their operands there.
double mma_cycles(const GemmProblem& problem, Tile tile, const WarpgroupShape& shape, const DeviceInfo& device) {
  constexpr double kSharedBytesPerCycle = 128.0;
  const CostModel& model = cost_model_of(device);
  const auto stages = static_cast<double>(ceil_div(problem.k, kKTile));
  const double math = static_cast<double>(tile.m * tile.n * kKTile) / static_cast<double>(math_rates(device.capability).tensor_bf16);
  const double row_sums = problem.epilogue.bias_gradient ? model.row_sums_fraction * shape.summing : 0.0;
  double stage = math;
  if (shape.words_loaded > 0.0) {
    const std::int64_t wgmmas = tile.m / shape.columns * (tile.n / 64) * (kKTile / 16);  // each reads its 64 rows and its columns of 16 k
    const double read = 64.0 * shape.words_loaded + static_cast<double>(shape.columns);
    const double bytes = static_cast<double>(stage_bytes(tile)) + static_cast<double>(wgmmas) * read * 16.0 * 2.0;
    stage = std::max(math, bytes / (kSharedBytesPerCycle * model.registers_fraction));
  }
  return stages * stage * (1.0 + row_sums) / model.wgmma_fraction;
}

// What TMA is busy with for a tile: its loads, those of a pair's columns shared, and D where it stores that.
double tma_cycles(const GemmProblem& problem, Tile tile, const WarpgroupShape& shape, const DeviceInfo& device) {
  const CostModel& model = cost_model_of(device);
  const auto lines_of_row = [&](std::int64_t alignment) {  // on average over its rows, which start on so many bytes
    const double whole = std::min(1.0, static_cast<double>(alignment) / 128.0);
    return whole + (1.0 - whole) * model.torn_row_lines;
  };
  const double a = lines_of_row(problem.a_alignment), b = lines_of_row(problem.b_alignment);
  const double cols = static_cast<double>(tile.m) / (shape.cluster == 2 ? 2.0 : 1.0) * (shape.swapped ? b : a);
  const double rows = static_cast<double>(tile.n) * (shape.swapped ? a : b);
  const double loaded = static_cast<double>(ceil_div(problem.k, kKTile)) * 2.0 * kKTile * (cols + rows);
  const bool torn = problem.d_alignment >= 16 && problem.d_alignment < 128 && !shape.direct_stores && !shape.deferred_stores;
  const double stored = torn ? static_cast<double>(tile.m * tile.n) * epilogue_bytes(problem).stored : 0.0;
  return loaded / model.load_bytes_per_cycle + stored * model.torn_store_cycles;
}

}  // namespace

WarpgroupTime warpgroup_time(const GemmProblem& problem, Tile tile, const WarpgroupShape& shape, const DeviceInfo& device) {
  const CostModel& model = cost_model_of(device);
  const Epilogue& epilogue = problem.epilogue;
  const double area = static_cast<double>(tile.m * tile.n);
  const double half = 0.5 * area;  // a third warpgroup has so few registers that it does not speed the other two up
  const double activates = costs(epilogue.activation), derives = costs(epilogue.derivative);
  const double finishing = stores_accumulators(problem) ? 0.0 : model.finish_cycles;
  const double store_rate = shape.direct_stores ? model.direct_store_bytes_per_cycle : model.store_bytes_per_cycle;
  const double narrow = model.narrow_store_cycles + model.narrow_side_cycles * (epilogue.passes() - 1);
  const double computing =
      finishing + model.activation_cycles * activates + model.derivative_cycles * derives + (problem.d_alignment >= 16 ? 0.0 : narrow);
  const bool cut = epilogue.bias && problem.d_major == Major::m && problem.m % 8 != 0 && problem.d_alignment >= 16;
  const int sides = epilogue.passes() - 1 - shape.deferred_sides;
  const double deferred = finishing + model.late_side_cycles * sides + model.late_input_cycles * shape.deferred_sides +
                          model.late_activation_cycles * (activates + derives);
  return {.mmas = std::pow(
              std::pow(mma_cycles(problem, tile, shape, device), 4.0) + std::pow(tma_cycles(problem, tile, shape, device), 4.0), 0.25),
          .epilogue = area * epilogue_bytes(problem).stored / store_rate + half * computing,
          .deferred = model.packing_cycles + half * deferred,
          .last_column = cut ? half * narrow : 0.0};
}

double cycles_of_waves(const GemmProblem& problem, std::int64_t waves, double block, const DeviceInfo& device) {
  const CostModel& model = cost_model_of(device);
  const double computes = costs(problem.epilogue.activation) + costs(problem.epilogue.derivative);
  return model.one_wave_fill_cycles + computes * model.one_wave_activation_cycles + static_cast<double>(waves) * block +
         static_cast<double>(waves - 1) * model.block_cycles;
}

double warpgroup_seconds(const GemmProblem& problem, const GemmPlan& plan, double schedule_cycles, const DeviceInfo& device) {
  const Tile tile = plan.tile;
  const auto tiles = static_cast<double>(plan.tiling.tiles), depth = static_cast<double>(round_up(problem.k, kKTile));
  const CostModel& model = cost_model_of(device);
  const bool paired = plan.split == 1 && plan.cluster == 2;
  const double columns = plan.raster.kind == RasterKind::columns ? model.neighbours_fraction : paired ? model.multicast_fraction : 1.0;
  const double asked = plan.raster.kind == RasterKind::patches ? model.patches_fraction : 1.0;
  const double loaded = asked * tiles * depth * 2.0 * (columns * static_cast<double>(tile.m) + static_cast<double>(tile.n));
  const EpilogueBytes bytes = epilogue_bytes(problem);
  const SidesInMemory sides = sides_in_memory(problem);
  const double rows_bytes = static_cast<double>(sides.rows * problem.k * 2);
  const bool rows_stay = device.l2_bytes == 0 || rows_bytes < 0.5 * static_cast<double>(device.l2_bytes);
  const GemmWork memory = memory_work(problem, device);
  const auto groups = static_cast<double>(ceil_div(sides.cols, group_columns(problem.k)));
  return seconds_of({.schedule_cycles = schedule_cycles,
                     .peak_cycles = tiles * static_cast<double>(tile.m * tile.n) * depth /
                                    static_cast<double>(device.sm_count * math_rates(device.capability).tensor_bf16),
                     .l2_bytes = loaded + static_cast<double>(problem.m * problem.n) * (bytes.stored + bytes.loaded),
                     .read_bytes = memory.read_bytes + (rows_stay ? 0.0 : (groups - 1.0) * rows_bytes),
                     .written_bytes = memory.written_bytes},
                    device);
}

}  // namespace tilewave
