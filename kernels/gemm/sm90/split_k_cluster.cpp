// Model: waves of clusters, each block its part of the products, then the exchange of sums and its part of the epilogue; the split is
// the one of 1 to 8 that takes the least.
#include "kernels/gemm/sm90/split_k_cluster.h"

#include "kernels/core/queue.h"
#include "kernels/gemm/facts/has_cuda.h"
#include "kernels/gemm/sm90/warpgroup_time.h"

namespace tilewave {
namespace {

// Clusters that run at a time. A cluster lies within a group of SMs, whose sizes differ from chip to chip: pairs fill an H200's 132
// SMs, larger ones leave some idle; these many of each size were seen to run together.
std::int64_t clusters_at_a_time(int size, const DeviceInfo& device) {
  constexpr std::int64_t kSeen[] = {132, 66, 36, 24, 18, 14, 12, 12};
  return kSeen[size - 1] * device.sm_count / 132;
}

GemmPlan plan(const GemmProblem& problem, Tile tile, const DeviceInfo& device, int split) {
  GemmPlan plan = plan_stored_tiles(problem, tile, device.sm_count);
  plan.stages = split_stages(tile);
  const CostModel& model = cost_model_of(device);
  const WarpgroupTime time = warpgroup_time(problem, tile, {.columns = tile.m}, device);
  const std::int64_t stages = ceil_div(problem.k, kKTile);
  const double exchange = static_cast<double>(tile.m * tile.n * 4) / model.exchange_bytes_per_cycle;
  GemmPlan best = plan;
  for (const int parts : {2, 3, 4, 5, 6, 7, 8, 1}) {
    const std::int64_t at_a_time = clusters_at_a_time(parts, device);
    if (parts > stages || at_a_time < 1 || (split > 0 && parts != split)) continue;
    const double share = static_cast<double>(ceil_div(stages, parts)) / static_cast<double>(stages);
    plan.split = plan.cluster = parts;
    plan.blocks = plan.tiling.tiles * parts;
    const double one_part = share * time.mmas + exchange + (parts - 1) * model.cluster_partial_cycles + time.epilogue / parts;
    plan.predicted_s =
        warpgroup_seconds(problem, plan, cycles_of_waves(problem, ceil_div(plan.tiling.tiles, at_a_time), one_part, device), device);
    if (best.predicted_s == 0.0 || plan.predicted_s < best.predicted_s) best = plan;
  }
  return best;
}

}  // namespace

constinit const GemmKernel kSplitKClusterKernel = on_hopper({.composition = {.kernel = "split_k", .schedule = GemmSchedule::cluster},
                                                             .tiles = kSplitKClusterTiles,
                                                             .shared_bytes = split_k_cluster_shared_bytes,
                                                             .own_refusal = refuse_warpgroup,
                                                             .own_plan = plan,
                                                             .launch_cuda = cuda_launch<launch_split_k_cluster>()});

}  // namespace tilewave
