// Model: one wave of blocks, each its part of the products; then all sums go through the second-level cache, out and in, and a block
// waits for the others of its tile. The split is the one that takes the least of those whose blocks all run at once.
#include "kernels/gemm/sm90/split_k.h"

#include <algorithm>

#include "kernels/core/queue.h"
#include "kernels/gemm/facts/has_cuda.h"
#include "kernels/gemm/sm90/warpgroup_time.h"

namespace tilewave {
namespace {

constexpr std::int64_t kMaxParts = 16;

std::string refuse(const GemmProblem& problem, const DeviceInfo& device) {
  const std::string refusal = refuse_adding_alone(problem, device);
  if (!refusal.empty()) return refusal;
  const Tile tile = kSplitKTiles[0];
  const std::int64_t tiles = plan_stored_tiles(problem, tile, device.sm_count).tiling.tiles;
  if (2 * tiles > device.sm_count) {
    return concat("the two halves of every tile's K must run at once, and ", tiles, " tiles of ", tile.m, "x", tile.n, " are too many for ",
                  device.sm_count, " SMs.");
  }
  return {};
}

GemmPlan plan(const GemmProblem& problem, Tile tile, const DeviceInfo& device, int split) {
  GemmPlan plan = plan_stored_tiles(problem, tile, device.sm_count);
  plan.stages = split_k_stages(tile);
  plan.raster.kind = RasterKind::columns;
  const CostModel& model = cost_model_of(device);
  const WarpgroupTime time = warpgroup_time(problem, tile, {.columns = tile.m}, device);
  const std::int64_t stages = ceil_div(problem.k, kKTile), at_once = device.sm_count / std::max<std::int64_t>(plan.tiling.tiles, 1);
  // Where not even two parts of all tiles run at once, every block has a whole tile and waits for nobody.
  const std::int64_t most = std::clamp<std::int64_t>(std::min(stages, at_once), 1, kMaxParts);
  const double exchange = static_cast<double>(2 * tile.m * tile.n * 4) / model.l2_bytes_per_cycle;
  GemmPlan best = plan;
  const std::int64_t first = std::min<std::int64_t>(split > 0 ? split : 2, most);
  for (std::int64_t parts = first; parts <= (split > 0 ? first : most); ++parts) {
    const double share = static_cast<double>(ceil_div(stages, parts)) / static_cast<double>(stages);
    const double one_part = share * time.mmas + exchange + time.epilogue / static_cast<double>(parts);
    plan.split = static_cast<int>(parts);
    plan.blocks = plan.tiling.tiles * parts;
    plan.workspace_bytes = split_k_bytes(plan.tiling.tiles, parts, tile);
    plan.predicted_s = warpgroup_seconds(
        problem, plan, model.fill_cycles + one_part + model.meeting_cycles + static_cast<double>(parts - 1) * model.partial_cycles, device);
    if (best.predicted_s == 0.0 || plan.predicted_s < best.predicted_s) best = plan;
  }
  return best;
}

}  // namespace

constinit const GemmKernel kSplitKKernel = on_hopper({.composition = {.kernel = "split_k", .schedule = GemmSchedule::split_k},
                                                      .tiles = kSplitKTiles,
                                                      .shared_bytes = split_k_shared_bytes,
                                                      .own_refusal = refuse,
                                                      .own_plan = plan,
                                                      .launch_cuda = cuda_launch<launch_split_k>()});

}  // namespace tilewave
