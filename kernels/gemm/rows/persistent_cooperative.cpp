// Model: every block's tiles one after another, each its products and then the part of its epilogue that one consumer does not hide
// under the other's products; loads run ahead.
#include "kernels/gemm/rows/persistent_cooperative.h"

#include <algorithm>

#include "kernels/gemm/rows/warpgroup_time.h"
#include "kernels/queue.h"

namespace tilewave {
namespace {

std::string refuse(const GemmProblem& problem, const DeviceInfo& device) {
  return refuse_warpgroup(problem, device, most_shared_bytes(kPersistentCooperativeTiles, persistent_cooperative_shared_bytes));
}

GemmPlan plan(const GemmProblem& problem, Tile tile, const DeviceInfo& device, int) {
  GemmPlan plan = plan_stored_tiles("persistent_cooperative", problem, tile, device.sm_count);
  plan.stages = cooperative_stages(tile);
  plan.cluster = cluster_of(plan.tiling);
  plan.raster = "bands";
  const std::int64_t turns = plan.tiling.tiles_m * ceil_div(plan.tiling.tiles_n, plan.cluster), clusters = device.sm_count / plan.cluster;
  plan.blocks = std::min(turns, clusters) * plan.cluster;
  const int consumers = cooperative_consumers(tile);
  const std::int64_t sums = tile.m * tile.n / consumers / 128;  // of a thread
  const WarpgroupTime time = warpgroup_time(problem, tile, {.columns = tile.m, .consumers = consumers, .crowded = sums >= 128}, device);
  const double rounds = static_cast<double>(ceil_div(turns, clusters)), exposed = time_model_of(device).exposed_fraction * time.epilogue;
  const double cycles = time_model_of(device).fill_cycles + rounds * (time.products + exposed) + time.epilogue - exposed;
  plan.predicted_s = warpgroup_seconds(problem, plan, cycles, device);
  return plan;
}

constexpr CudaGemmLaunch cuda_launch() {
  if constexpr (kHasCuda) return launch_persistent_cooperative;
  return nullptr;
}

}  // namespace

const GemmRow kPersistentCooperativeRow = {.name = "persistent_cooperative",
                                           .backend = Backend::cuda,
                                           .tensor_cores = true,
                                           .tiles = kPersistentCooperativeTiles,
                                           .own_refusal = refuse,
                                           .plan = plan,
                                           .launch_cuda = cuda_launch()};

}  // namespace tilewave
