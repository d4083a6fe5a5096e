// What the portable CUDA rows' plans share: how a tile lies in memory, whether K is split, and a model of the time: waves of tiles, each
// its products and then its epilogue, behind the latency of the first loads; for a split the pass that adds the parts. The device's
// CostModel turns that, the bytes and the peak rate into seconds.
#pragma once

#include <algorithm>
#include <cmath>
#include <string_view>

#include "kernels/gemm/cost/cost_model.h"
#include "kernels/gemm/facts/split.h"
#include "kernels/gemm/kernel.h"

namespace tilewave {

struct GpuKernelModel {
  double multiply_adds_per_cycle = 0.0;  // of an SM, while all its blocks are busy
  double peak_multiply_adds_per_cycle = 0.0;
  int blocks_per_sm = 1;
  int stages = 1;
  std::int64_t depth = 1;         // of K that a block takes at a time
  std::int64_t min_split = 1024;  // of K in a part; K is not split where it is 0
  std::int64_t max_ctas = 0;      // launched; 0: a block for every tile
  bool cuts_the_rest = false;     // K is split of those tiles alone that whole waves leave, and a part lies in the workspace as a tile
  int split = 0;                  // in so many parts; 0: what takes the least
  std::int64_t rows_covered = 0;  // of D, by its tiles, where that is more than there are
  double store_cycles = 0.0;      // of one element of D; 0: the cost model's of rows on mma.sync
};

// Blocks that an SM holds at a time, by their shared memory.
constexpr std::int64_t resident_blocks(std::int64_t wanted, std::int64_t shared_bytes, const DeviceInfo& device) {
  constexpr std::int64_t kReserved = 1024;  // of each block
  return std::clamp<std::int64_t>((device.shared_bytes + kReserved) / (shared_bytes + kReserved), 1, wanted);
}

inline GemmPlan plan_on_gpu(const GemmProblem& problem, Tile tile, const DeviceInfo& device, const GpuKernelModel& model) {
  const CostModel& time = cost_model_of(device);
  const std::int64_t slots = device.sm_count * model.blocks_per_sm;
  GemmPlan plan = plan_tiles(problem, tile, slots);
  if (model.rows_covered > 0) {
    const bool rows_are_n = problem.d_major == Major::m;
    plan.tiling = tile_waves(rows_are_n ? problem.m : model.rows_covered, rows_are_n ? model.rows_covered : problem.n, tile, slots);
    plan.tiling.useful_fraction = static_cast<double>(problem.m * problem.n) / static_cast<double>(plan.tiling.tiles * tile.m * tile.n);
  }
  const auto sms = static_cast<double>(device.sm_count);
  const double area = static_cast<double>(tile.m * tile.n);
  const std::int64_t size = size_of(problem.operand_dtype);

  const auto cycles_of = [&](std::int64_t items, double depth, int passes) {
    const double resident = std::min<double>(static_cast<double>(model.blocks_per_sm), std::ceil(static_cast<double>(items) / sms));
    const double store = model.store_cycles > 0.0 ? model.store_cycles : time.mma_store_cycles;
    const bool narrow = problem.d_alignment < 16;
    const double epilogue = area * (narrow ? time.mma_narrow_pass_cycles * (1 + passes) : store + time.mma_pass_cycles * passes);
    return static_cast<double>(ceil_div(items, slots)) * resident * (area * depth / model.multiply_adds_per_cycle + epilogue);
  };
  const auto all_depth = static_cast<double>(round_up(problem.k, model.depth));
  const std::int64_t part_bytes = 4 * (tile.m * tile.n + (problem.epilogue.bias_gradient ? tile.n : 0));

  const GemmWork memory = memory_work(problem, device);
  double best_s = 0.0;
  // Parts are tried until they make a few waves: past that there is little to even out.
  constexpr std::int64_t kMaxWaves = 4, kMaxParts = 64;
  const std::int64_t all = plan.tiling.tiles;
  const std::int64_t most = model.min_split == 0 ? 1 : std::clamp<std::int64_t>(problem.k / model.min_split, 1, kMaxParts);
  const std::int64_t first = model.split > 0 ? std::min<std::int64_t>(model.split, most) : 1;
  for (std::int64_t split = first; split <= (model.split > 0 ? first : most); ++split) {
    const std::int64_t cut = model.cuts_the_rest ? split_tiles(all, slots, split) : split == 1 ? 0 : all, parts = cut * split;
    if (split > first && (cut == 0 || parts > kMaxWaves * slots)) break;
    const auto depth = static_cast<double>(round_up(ceil_div(problem.k, split), model.depth));  // of a part
    const double cycles =
        time.mma_fill_cycles + cycles_of(all - cut, all_depth, problem.epilogue.passes() - 1) + cycles_of(parts, depth, 0);
    const double taken = static_cast<double>(all - cut) * all_depth + static_cast<double>(parts) * depth;  // of K, by all tiles
    const std::int64_t workspace = model.cuts_the_rest ? parts * part_bytes : split_bytes(problem, split);
    double seconds = seconds_of({.schedule_cycles = cycles,
                                 .peak_cycles = area * taken / (sms * model.peak_multiply_adds_per_cycle),
                                 .l2_bytes = static_cast<double>((tile.m + tile.n) * size) * taken,
                                 .read_bytes = memory.read_bytes,
                                 .written_bytes = memory.written_bytes + static_cast<double>(workspace)},
                                device);
    if (cut > 0) seconds += seconds_of({.read_bytes = static_cast<double>(workspace)}, device);
    if (split > first && seconds >= best_s) continue;
    best_s = seconds;
    plan.split = static_cast<int>(cut > 0 ? split : 1);
    plan.whole_tiles = plan.split > 1 ? all - cut : 0;
    plan.workspace_bytes = workspace;
  }
  plan.predicted_s = best_s;
  plan.stages = model.stages;
  plan.blocks = model.max_ctas > 0 ? std::min(plan.items(), model.max_ctas) : plan.items();

  // A wave's tiles cover about as many rows as columns, so that it reads little.
  const auto [rows, cols] = in_memory(problem, tile);
  const double square = std::sqrt(static_cast<double>(slots) * static_cast<double>(cols) / static_cast<double>(rows));
  plan.raster = {.kind = RasterKind::grouped, .group = std::max<std::int64_t>(1, std::llround(square))};
  return plan;
}

// Offsets within a tile's walk are 32-bit numbers.
inline std::string refuse_huge(const GemmProblem& problem) {
  constexpr std::int64_t kMax = std::int64_t{1} << 30;
  if (problem.k > kMax || ceil_div(problem.m, 64) * ceil_div(problem.n, 64) > kMax / 64) {
    return "it counts K and its tiles in 32 bits, and this problem has more.";
  }
  return {};
}

}  // namespace tilewave
