// Model: equal shares of all products, an epilogue for every tile that a block finishes, and a wait at the end, as long as the fraction
// of blocks is large that leave their last sums to others.
#include "kernels/gemm/sm90/stream_k.h"

#include <algorithm>

#include "kernels/core/queue.h"
#include "kernels/gemm/facts/has_cuda.h"
#include "kernels/gemm/sm90/stream_k_parts.h"
#include "kernels/gemm/sm90/warpgroup_time.h"

namespace tilewave {
namespace {

constexpr std::int64_t kMaxRowsAlone = 64;  // of tiles: of more, one that a pair has too many costs less than what pairs save

GemmPlan plan(const GemmProblem& problem, Tile tile, const DeviceInfo& device, int) {
  GemmPlan plan = plan_stored_tiles(problem, tile, device.sm_count);
  plan.stages = stream_k_stages(tile);
  plan.raster.kind = RasterKind::bands;
  plan.streams_k = true;
  const std::int64_t stages = ceil_div(problem.k, kKTile);
  const Tiling& tiling = plan.tiling;
  plan.cluster = device.sm_count > 1 && (tiling.tiles_n % 2 == 0 || tiling.tiles_n > kMaxRowsAlone) ? 2 : 1;
  const std::int64_t rounds = tiling.tiles_m * ceil_div(tiling.tiles_n, plan.cluster);
  const std::int64_t clusters = std::min({device.sm_count / plan.cluster, std::int64_t{kStreamKMaxCtas}, rounds * stages});
  plan.blocks = clusters * plan.cluster;
  const std::int64_t shared = stream_k_tiles(rounds, clusters);
  plan.workspace_bytes = stream_k_workspace_bytes(shared > 0 ? plan.blocks : 0, tile);
  const CostModel& model = cost_model_of(device);
  const WarpgroupTime time = warpgroup_time(
      problem, tile, {.columns = tile.m, .summing = 1.0 / static_cast<double>(plan.tiling.tiles_m), .cluster = plan.cluster}, device);
  const double share = static_cast<double>(rounds) / static_cast<double>(clusters);
  double cycles = model.fill_cycles + share * (time.mmas + model.tile_cycles + time.epilogue) + time.epilogue;
  if (shared > 0) {
    const double linked = std::max(0.0, 1.0 - static_cast<double>(shared) / static_cast<double>(clusters));  // their last sums to others
    cycles += model.sharing_cycles + linked * model.link_cycles;
  }
  plan.predicted_s = warpgroup_seconds(problem, plan, cycles, device);
  return plan;
}

}  // namespace

constinit const GemmKernel kStreamKKernel = on_hopper({.composition = {.kernel = "stream_k", .schedule = GemmSchedule::stream_k},
                                                       .tiles = kStreamKTiles,
                                                       .shared_bytes = stream_k_shared_bytes,
                                                       .own_refusal = refuse_adding_alone,
                                                       .own_plan = plan,
                                                       .launch_cuda = cuda_launch<launch_stream_k>()});

}  // namespace tilewave
