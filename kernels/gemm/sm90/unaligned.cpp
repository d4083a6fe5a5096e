// Model: equal work for blocks that stay, each tile its products, for which warps load the row operand out of shared memory word by word,
// and then its epilogue.
#include "kernels/gemm/sm90/unaligned.h"

#include <algorithm>

#include "kernels/core/queue.h"
#include "kernels/gemm/facts/has_cuda.h"
#include "kernels/gemm/sm90/warpgroup_time.h"

namespace tilewave {
namespace {

std::string refuse(const GemmProblem& problem, const DeviceInfo& device) {
  const SidesInMemory sides = sides_in_memory(problem);
  const std::string refusal = refuse_warpgroup(with_aligned_rows(problem), device);
  if (!refusal.empty()) return refusal;
  if (sides.rows_along_k || sides.cols_along_k)
    return "it takes K residue by residue, so both operands must lie across it, as a wgrad's do.";
  if (sides.row_alignment >= 16) return "rows that start on 16 bytes need no residues.";
  Epilogue others = problem.epilogue;
  others.bias_gradient = others.accumulate = false;
  if (others != Epilogue{})
    return "it stores sums as they are, adds them to f32, or sums a bias gradient; this problem has another epilogue.";
  if (problem.epilogue.accumulate && problem.output_dtype != DType::f32) return "it accumulates in f32 alone.";
  return {};
}

GemmPlan plan(const GemmProblem& problem, Tile tile, const DeviceInfo& device, int) {
  GemmPlan plan = plan_stored_tiles(problem, tile, device.sm_count);
  plan.stages = realigned_stages(tile);
  plan.raster.kind = RasterKind::bands;
  const double rounds = plan_persistent(plan, device);
  GemmProblem taken = problem;  // each residue's K in whole stages
  taken.k = residues_of_k(problem).blocks * kKTile;
  // Two neighbouring rows lie in one word, or where they begin an odd number of elements early, as every second one does, in two.
  const double words_loaded = sides_in_memory(problem).row_alignment >= 4 ? 1.0 : 1.5;
  const WarpgroupTime time = warpgroup_time(
      taken, tile,
      {.columns = tile.m, .summing = 1.0 / static_cast<double>(plan.tiling.tiles_m), .cluster = plan.cluster, .words_loaded = words_loaded},
      device);
  const CostModel& model = cost_model_of(device);
  const double cycles = model.fill_cycles + rounds * (time.mmas + model.tile_cycles + time.epilogue);
  plan.predicted_s = warpgroup_seconds(problem, plan, cycles, device);
  return plan;
}

}  // namespace

ResiduesOfK residues_of_k(const GemmProblem& problem) {
  const SidesInMemory sides = sides_in_memory(problem);
  ResiduesOfK of = {.residues = residues_of(sides.rows, sides.row_pitch, sides.row_alignment, problem.operand_dtype)};
  of.used = std::min(of.residues, problem.k);
  for (std::int64_t i = 0; i < of.used; ++i) of.blocks += ceil_div(ceil_div(problem.k - i, of.residues), kKTile);
  return of;
}

constinit const GemmKernel kUnalignedKernel = on_hopper({.composition = {.kernel = "unaligned"},
                                                         .tiles = kUnalignedTiles,
                                                         .shared_bytes = unaligned_shared_bytes,
                                                         .own_refusal = refuse,
                                                         .own_plan = plan,
                                                         .launch_cuda = cuda_launch<launch_unaligned>()});

}  // namespace tilewave
