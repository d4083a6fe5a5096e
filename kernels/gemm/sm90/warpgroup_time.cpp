// From a problem and a tile to cycles, and from a schedule of them to seconds.
#include "kernels/gemm/sm90/warpgroup_time.h"

#include <algorithm>

#include "kernels/gemm/facts/residues.h"

namespace tilewave {
namespace {

// Whether it takes instructions to speak of.
double costs(Activation activation) { return activation == Activation::none || activation == Activation::relu ? 0.0 : 1.0; }

}  // namespace

WarpgroupTime warpgroup_time(const GemmProblem& problem, Tile tile, const WarpgroupShape& shape, const DeviceInfo& device) {
  constexpr double kSharedBytesPerCycle = 128.0;
  const CostModel& time = cost_model_of(device);
  const Epilogue& epilogue = problem.epilogue;
  const double area = static_cast<double>(tile.m * tile.n), stages = static_cast<double>(ceil_div(problem.k, kKTile));
  const double math = area * kKTile / static_cast<double>(math_rates(device.capability).tensor_bf16);
  const std::int64_t wgmmas = tile.m / shape.columns * (tile.n / 64) * (kKTile / 16);  // each reads its 64 rows and its columns of 16 k
  const bool through_registers = shape.words_loaded > 0.0;
  const double read = (through_registers ? 64.0 * shape.words_loaded : 64.0) + static_cast<double>(shape.columns);
  const double shared_rate = kSharedBytesPerCycle * (through_registers ? time.registers_fraction : 1.0);
  const double shared = (static_cast<double>(stage_bytes(tile)) + static_cast<double>(wgmmas) * read * 16.0 * 2.0) / shared_rate;
  const double row_sums = epilogue.bias_gradient ? time.row_sums_fraction : 0.0;
  const double activates = costs(epilogue.activation), derives = costs(epilogue.derivative);
  const double finishing = stores_accumulators(problem) ? 0.0 : time.finish_cycles;
  const EpilogueBytes bytes = epilogue_bytes(problem);
  const double store_rate = shape.direct_stores ? time.direct_store_bytes_per_cycle : time.store_bytes_per_cycle;
  const double half = 0.5 * area;  // a third warpgroup has so few registers that it does not speed the other two up
  const double narrow = time.narrow_store_cycles + time.narrow_side_cycles * (epilogue.passes() - 1);
  const double computing =
      finishing + time.activation_cycles * activates + time.derivative_cycles * derives + (problem.d_alignment >= 16 ? 0.0 : narrow);
  const int sides = epilogue.passes() - 1 - shape.deferred_sides;
  const double deferred = finishing + time.late_side_cycles * sides + time.late_input_cycles * shape.deferred_sides +
                          time.late_activation_cycles * (activates + derives);
  return {.mmas = stages * (shape.own_loop ? math : std::max(math, shared)) * (1.0 + row_sums) / time.wgmma_fraction,
          .epilogue = area * bytes.stored / store_rate + half * computing,
          .deferred = time.packing_cycles + half * deferred};
}

double cycles_of_waves(std::int64_t waves, double block, const DeviceInfo& device) {
  const CostModel& model = cost_model_of(device);
  return model.fill_cycles + static_cast<double>(waves) * block + static_cast<double>(waves - 1) * model.block_cycles;
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
  const auto groups = static_cast<double>(ceil_div(sides.cols, group_columns(problem.k)));
  return seconds_of({.schedule_cycles = schedule_cycles,
                     .peak_cycles = tiles * static_cast<double>(tile.m * tile.n) * depth /
                                    static_cast<double>(device.sm_count * math_rates(device.capability).tensor_bf16),
                     .l2_bytes = loaded + static_cast<double>(problem.m * problem.n) * (bytes.stored + bytes.loaded),
                     .memory_bytes = static_cast<double>(problem.bytes()) + (rows_stay ? 0.0 : (groups - 1.0) * rows_bytes)},
                    device);
}

}  // namespace tilewave
