// Model: that of persistent_deferred_store, for the tiles that residues make, each stored in whole words; where an operand's rows begin
// anywhere, a stage takes what one of a general loop does; parts of tiles take their share of the products, and a pass that adds them.
#include "kernels/gemm/sm90/unaligned_deferred.h"

#include <algorithm>

#include "kernels/core/queue.h"
#include "kernels/gemm/cost/cost_model.h"
#include "kernels/gemm/facts/has_cuda.h"
#include "kernels/gemm/sm90/warpgroup_time.h"

namespace tilewave {
namespace {

std::string refuse(const GemmProblem& problem, const DeviceInfo& device) {
  const SidesInMemory sides = sides_in_memory(problem);
  const std::string refusal = refuse_warpgroup(with_aligned_rows(problem), device);
  if (!refusal.empty()) return refusal;
  if (problem.output_dtype == DType::f32) return "a thread can keep a tile's sums for later in 16 bits, not in f32.";
  if (problem.epilogue != Epilogue{})
    return "it stores sums as they are, as a vocabulary's projection and its dgrad do; this problem has an epilogue.";
  if (!sides.rows_along_k) return "it picks rows of one residue from the operand that D's rows come from, which must lie along K.";
  if (sides.row_alignment < 16 && sides.cols_along_k) {
    return "where rows of one operand start on any element it moves the other's K, which then is no dimension that the other lies along.";
  }
  if (problem.d_alignment < 16 && !sides.cols_along_k) {
    return "where D's rows start on any element it moves the other operand's columns of D, which must lie along K.";
  }
  if (sides.row_alignment >= 16 && problem.d_alignment >= 16) return "rows that start on 16 bytes need no residues.";
  return {};
}

GemmPlan plan(const GemmProblem& problem, Tile tile, const DeviceInfo& device, int split) {
  const ResidueTiles tiles = residue_tiles(problem, tile);
  GemmPlan plan = plan_stored_tiles(problem, tile, device.sm_count);
  plan.tiling = tile_waves(tiles.across * tile.m, tiles.down * tile.n, tile, device.sm_count);
  plan.tiling.useful_fraction = static_cast<double>(problem.m) * static_cast<double>(problem.n) /
                                (static_cast<double>(plan.tiling.tiles) * static_cast<double>(tile.m * tile.n));
  plan.stages = unaligned_deferred_stages(tile);
  plan.raster.kind = RasterKind::bands;
  GemmProblem stored = problem;  // in words of 16 bytes
  stored.d_alignment = 16;
  const WarpgroupTime time = warpgroup_time(stored, tile, {.columns = tile.m, .deferred_stores = true}, device);
  const CostModel& model = cost_model_of(device);
  // Words that begin anywhere are stored as two.
  const double torn = tiles.shift == ResidueShift::columns ? 0.5 * static_cast<double>(tile.m * tile.n) * model.late_side_cycles : 0.0;

  // K in so many parts as end the last wave the soonest, of eight stages at least.
  constexpr std::int64_t kMaxParts = 8, kMinStages = 8;
  const std::int64_t stages = ceil_div(problem.k, kKTile), all = plan.tiling.tiles;
  const std::int64_t most = std::clamp<std::int64_t>(stages / kMinStages, 1, kMaxParts);
  const std::int64_t first = split > 0 ? std::min<std::int64_t>(split, most) : 1;
  for (std::int64_t parts = first; parts <= (split > 0 ? first : most); ++parts) {
    const std::int64_t cut = split_tiles(all, device.sm_count, parts), items = all - cut + cut * parts;
    const double rounds = static_cast<double>(ceil_div(all - cut, device.sm_count)) +
                          static_cast<double>(ceil_div(cut * parts, device.sm_count)) / static_cast<double>(parts);
    const double cycles = model.fill_cycles + rounds * (time.mmas + time.deferred + torn) + time.epilogue;
    const std::int64_t sums = cut * parts * tile.m * tile.n * 4;  // bytes, written and read again
    double seconds = warpgroup_seconds(problem, plan, cycles, device);
    if (cut > 0) seconds += seconds_of({.read_bytes = static_cast<double>(sums), .written_bytes = static_cast<double>(sums)}, device);
    if (parts > first && seconds >= plan.predicted_s) continue;
    plan.predicted_s = seconds;
    plan.split = static_cast<int>(cut > 0 ? parts : 1);
    plan.whole_tiles = all - cut;
    plan.blocks = std::min(items, device.sm_count);
    plan.workspace_bytes = sums;
  }
  return plan;
}

}  // namespace

ResidueTiles residue_tiles(const GemmProblem& problem, Tile tile) {
  const SidesInMemory sides = sides_in_memory(problem);
  const auto of = [&](ResidueShift shift, std::int64_t residues, std::int64_t early) -> ResidueTiles {
    const std::int64_t used = std::min(residues, sides.rows);
    return {.shift = shift,
            .residues = residues,
            .used = used,
            .down = used * ceil_div(ceil_div(sides.rows, residues), tile.n),
            .across = ceil_div(sides.cols + early, tile.m)};
  };
  if (sides.row_alignment < 16) {
    return of(ResidueShift::k, residues_of(problem.k, sides.row_pitch, sides.row_alignment, problem.operand_dtype), 0);
  }
  return of(ResidueShift::columns, residues_of(sides.cols, problem.d_pitch, problem.d_alignment, problem.output_dtype),
            max_shift(problem.d_alignment, problem.output_dtype));
}

constinit const GemmKernel kUnalignedDeferredKernel =
    on_hopper({.composition = {.kernel = "unaligned", .epilogue = EpilogueTiming::deferred},
               .tiles = kUnalignedDeferredTiles,
               .shared_bytes = unaligned_deferred_shared_bytes,
               .own_refusal = refuse,
               .own_plan = plan,
               .launch_cuda = cuda_launch<launch_unaligned_deferred>()});

}  // namespace tilewave
