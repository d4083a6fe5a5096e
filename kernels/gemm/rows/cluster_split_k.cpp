// Model: waves of clusters, each block its part of the products, then the exchange of sums and its part of the epilogue; the split is
// the one of 1 to 8 that takes the least.
#include "kernels/gemm/rows/cluster_split_k.h"

#include <algorithm>

#include "kernels/queue.h"

namespace tilewave {
namespace {

constexpr double kFill = 1500.0;  // cycles
constexpr double kExchangeBytesPerCycle = 24.0;

std::string refuse(const GemmProblem& problem, const DeviceInfo& device) {
  std::int64_t most = 0;
  for (const Tile tile : kClusterSplitKTiles) most = std::max(most, cluster_split_k_shared_bytes(tile));
  return refuse_warpgroup(problem, device, most);
}

// Clusters that run at a time. A cluster lies within a group of SMs, whose sizes differ from chip to chip: pairs fill an H200's 132
// SMs, larger ones leave some idle; these many of each size were seen to run together.
std::int64_t clusters_at_a_time(int size, const DeviceInfo& device) {
  constexpr std::int64_t kSeen[] = {132, 66, 36, 24, 18, 14, 12, 12};
  return kSeen[size - 1] * device.sm_count / 132;
}

GemmPlan plan(const GemmProblem& problem, Tile tile, const DeviceInfo& device) {
  GemmPlan plan = plan_tiles("cluster_split_k", problem, tile, device.sm_count);
  plan.stages = split_stages(tile);
  const WarpgroupTime time = warpgroup_time(problem, tile, {.columns = tile.m, .activation_cycles = 0.3}, device);
  const std::int64_t blocks = ceil_div(problem.k, kBlockK);
  double least = 0.0;
  for (const int split : {2, 3, 4, 5, 6, 7, 8, 1}) {
    const std::int64_t at_a_time = clusters_at_a_time(split, device);
    if (split > blocks || at_a_time < 1) continue;
    const double exchange = static_cast<double>(tile.m * tile.n * 4) / kExchangeBytesPerCycle;
    const double cycles =
        time.launch + static_cast<double>(ceil_div(plan.tiling.tiles, at_a_time)) *
                          (kFill + static_cast<double>(ceil_div(blocks, split)) * time.stage + exchange + time.epilogue / split);
    if (least != 0.0 && cycles >= least) continue;
    least = cycles;
    plan.split = plan.cluster = split;
  }
  plan.blocks = plan.tiling.tiles * plan.split;
  plan.predicted_s = seconds_of(least, device);
  return plan;
}

constexpr CudaGemmLaunch cuda_launch() {
  if constexpr (kHasCuda) return launch_cluster_split_k;
  return nullptr;
}

}  // namespace

const GemmRow kClusterSplitKRow = {.name = "cluster_split_k",
                                   .backend = Backend::cuda,
                                   .tensor_cores = true,
                                   .tiles = kClusterSplitKTiles,
                                   .refuse = refuse,
                                   .plan = plan,
                                   .launch_cuda = cuda_launch()};

}  // namespace tilewave
