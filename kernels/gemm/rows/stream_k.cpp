// Model: equal shares of all products, an epilogue for every tile that a block finishes, and a wait for each block that a tile's sums
// go through.
#include "kernels/gemm/rows/stream_k.h"

#include <algorithm>

#include "kernels/gemm/rows/warpgroup_time.h"
#include "kernels/queue.h"

namespace tilewave {
namespace {

GemmPlan plan(const GemmProblem& problem, Tile tile, const DeviceInfo& device, int) {
  GemmPlan plan = plan_stored_tiles("stream_k", problem, tile, device.sm_count);
  plan.stages = stream_k_stages(tile);
  plan.raster = "bands";
  plan.streams_k = true;
  const std::int64_t all = plan.tiling.tiles * ceil_div(problem.k, kBlockK);  // stages
  plan.blocks = std::min(device.sm_count, all);
  const std::int64_t shared = shared_tiles(plan.tiling.tiles, plan.blocks);
  plan.workspace_bytes = stream_k_workspace_bytes(shared, tile);
  const TimeModel& model = time_model_of(device);
  const WarpgroupTime time = warpgroup_time(problem, tile, {.columns = tile.m}, device);
  const double share = static_cast<double>(plan.tiling.tiles) / static_cast<double>(plan.blocks);
  double cycles = model.fill_cycles + share * (time.products + model.tile_cycles + time.epilogue) + time.epilogue;
  if (shared > 0) {
    cycles +=
        model.sharing_cycles + model.link_cycles * std::max(0.0, static_cast<double>(plan.blocks) / static_cast<double>(shared) - 1.0);
  }
  plan.predicted_s = warpgroup_seconds(problem, plan, cycles, device);
  return plan;
}

constexpr CudaGemmLaunch cuda_launch() {
  if constexpr (kHasCuda) return launch_stream_k;
  return nullptr;
}

}  // namespace

const GemmRow kStreamKRow = {.name = "stream_k",
                             .backend = Backend::cuda,
                             .tensor_cores = true,
                             .tiles = kStreamKTiles,
                             .shared_bytes = stream_k_shared_bytes,
                             .own_refusal = refuse_adding_alone,
                             .plan = plan,
                             .launch_cuda = cuda_launch()};

}  // namespace tilewave
