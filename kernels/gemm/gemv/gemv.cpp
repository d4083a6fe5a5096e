// Model: a warp asks for so much of the matrix at a time and waits for it, round after round; no SM takes more CTAs at a time than it has
// room for; all of them together are no faster than memory. Where K is split over CTAs, the last of a tile's adds their parts.
#include "kernels/gemm/gemv/gemv.h"

#include <algorithm>

#include "kernels/gemm/cost/cost_model.h"
#include "kernels/gemm/facts/split.h"
#include "kernels/gemm/simt/cuda_core_refusals.h"

namespace tilewave {
namespace {

constexpr int kMaxParts = 64;
constexpr std::int64_t kMaxWaves = 2;     // of CTAs, where K is split: past that there is little to even out
constexpr std::int64_t kFlagsPerSm = 32;  // of a stream

bool lies_so(Major major, MatrixLies lies) { return (major == Major::k) == (lies == MatrixLies::along_k); }

bool suits(const GemmProblem& problem, Tile tile, MatrixLies lies) {
  const GemvSides sides = gemv_sides(problem, tile);
  return sides.vectors <= kMaxVectors && sides.matrix_along_k == (lies == MatrixLies::along_k);
}

// Seconds of so many parts of K; the workspace's bytes are written and read.
double seconds_in_parts(const GemmProblem& problem, const GemmPlan& plan, const DeviceInfo& device, const GemvModel& model) {
  const CostModel& time = cost_model_of(device);
  const GemvSides sides = gemv_sides(problem, plan.tile);
  const GemvWarps warps = gemv_warps(rows_of_tile(plan.tile), model.rows);
  const std::int64_t part = gemv_part_depth(problem.k, plan.split);
  const std::int64_t rounds = warps.turns * ceil_div(part, model.depth * warps.along_k);
  const std::int64_t of_sm = ceil_div(plan.blocks, std::int64_t{device.sm_count});
  const std::int64_t generations = ceil_div(of_sm, std::int64_t{model.ctas_per_sm});
  const double round = model.matrix == MatrixLies::along_k ? time.gemv_round_cycles : time.gemv_across_round_cycles;
  const double cta = time.gemv_cta_cycles + static_cast<double>(rounds) * round;
  // A CTA that adds has a few outputs a thread, and reads what lies in the second-level cache.
  const std::int64_t outputs = ceil_div(rows_of_tile(plan.tile) * sides.vectors, std::int64_t{32} * kGemvWarps);
  const double adding = time.gemv_cta_cycles + 0.5 * static_cast<double>(outputs) * time.gemv_round_cycles;
  const double meeting = plan.split > kGemvGroup ? 2.0 * adding : plan.split > 1 ? adding : 0.0;
  const auto size = static_cast<double>(size_of(problem.operand_dtype));
  const auto sms = static_cast<double>(device.sm_count);
  const auto rows = static_cast<double>(plan.tiling.tiles * rows_of_tile(plan.tile));
  const double multiply_adds = rows * static_cast<double>(sides.vectors * problem.k);
  const double vectors = static_cast<double>(plan.tiling.tiles * sides.vectors * problem.k) * size;  // every tile's CTAs read them
  const auto bytes = static_cast<double>(problem.bytes() + 2 * plan.workspace_bytes);
  return seconds_of({.schedule_cycles = static_cast<double>(generations) * cta + meeting,
                     .peak_cycles = model.multiply_adds_per_cycle > 0.0 ? multiply_adds / (sms * model.multiply_adds_per_cycle) : 0.0,
                     .l2_bytes = bytes + vectors,
                     .read_bytes = bytes * time.read_fraction / time.gemv_memory_fraction},
                    device);
}

}  // namespace

std::string refuse_gemv(const GemmProblem& problem, const DeviceInfo& device, MatrixLies lies) {
  const std::string refusal = refuse_without_cuda_cores(problem, device);
  if (!refusal.empty()) return refusal;
  if (std::min(problem.m, problem.n) > kMaxVectors) {
    return concat("it is there for 1 to ", kMaxVectors, " outputs or tokens, and here M = ", problem.m, " and N = ", problem.n, ".");
  }
  const bool matrix_a = problem.n <= kMaxVectors && lies_so(problem.a_major, lies);
  const bool matrix_b = problem.m <= kMaxVectors && lies_so(problem.b_major, lies);
  if (matrix_a || matrix_b) return {};
  return concat("it reads a matrix whose rows lie ", lies == MatrixLies::along_k ? "along" : "across", " K, and those of ",
                problem.n <= problem.m ? "A" : "B", " lie ", lies == MatrixLies::along_k ? "across" : "along", " it.");
}

bool suits_matrix_along_k(const GemmProblem& problem, Tile tile) { return suits(problem, tile, MatrixLies::along_k); }
bool suits_matrix_across_k(const GemmProblem& problem, Tile tile) { return suits(problem, tile, MatrixLies::across_k); }

GemmPlan plan_gemv(const GemmProblem& problem, Tile tile, const DeviceInfo& device, const GemvModel& model) {
  GemmPlan plan = plan_tiles(problem, tile, device.sm_count * std::int64_t{model.ctas_per_sm});
  const std::int64_t tiles = plan.tiling.tiles, one_round = model.depth * gemv_warps(rows_of_tile(tile), model.rows).along_k;
  const bool flagged = gemv_flags(tiles, kMaxParts) <= kFlagsPerSm * device.sm_count;
  const std::int64_t most = flagged ? std::clamp<std::int64_t>(problem.k / one_round, 1, std::int64_t{kMaxParts}) : 1;
  const std::int64_t first = model.split > 0 ? std::min<std::int64_t>(model.split, most) : 1;
  GemmPlan best;
  for (std::int64_t split = first; split <= (model.split > 0 ? first : most); ++split) {
    if (split > first && tiles * split > kMaxWaves * plan.tiling.slots) break;
    plan.split = static_cast<int>(split);
    plan.blocks = tiles * split;
    plan.workspace_bytes = split_bytes(problem, split);
    plan.predicted_s = seconds_in_parts(problem, plan, device, model);
    if (split == first || plan.predicted_s < best.predicted_s) best = plan;
  }
  return best;
}

GemmPlan plan_gemv_rung(const GemmProblem& problem, Tile tile, const DeviceInfo& device, const GemvRung& rung) {
  GemmPlan plan = plan_tiles(problem, tile, device.sm_count * std::int64_t{rung.ctas_per_sm});
  const CostModel& time = cost_model_of(device);
  const std::int64_t generations = ceil_div(plan.tiling.tiles, plan.tiling.slots), rounds = ceil_div(problem.k, rung.depth);
  const auto bytes = static_cast<double>(problem.bytes());
  const auto vectors = static_cast<double>(gemv_sides(problem, tile).vectors);  // each reads the matrix
  plan.predicted_s =
      seconds_of({.schedule_cycles = static_cast<double>(generations) *
                                     (time.gemv_cta_cycles + static_cast<double>(rounds) * rung.round_share * time.gemv_round_cycles),
                  .l2_bytes = vectors * bytes,
                  .read_bytes = bytes * time.read_fraction / time.gemv_memory_fraction},
                 device);
  return plan;
}

std::string refuse_gemv_rung(const GemmProblem& problem, const DeviceInfo& device) {
  if (problem.epilogue.bias_gradient) return "it sums no bias gradient; it is there to learn from.";
  return refuse_gemv(problem, device, MatrixLies::along_k);
}

}  // namespace tilewave
