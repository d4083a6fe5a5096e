// Model: waves of tiles, each its products and then its epilogue, behind the latency of the first loads; both warpgroups wait for
// each other after every stage.
#include "kernels/gemm/ladder/bulk_copy_wgmma.h"

#include "kernels/core/queue.h"
#include "kernels/gemm/facts/has_cuda.h"
#include "kernels/gemm/sm90/warpgroup_time.h"

namespace tilewave {
namespace {

GemmPlan plan(const GemmProblem& problem, Tile tile, const DeviceInfo& device, int) {
  GemmPlan plan = plan_stored_tiles(problem, tile, device.sm_count);
  plan.stages = kBulkCopyWgmmaStages;
  const WarpgroupTime time = warpgroup_time(problem, tile, {.columns = tile.m, .direct_stores = true}, device);
  const double one_tile = time.mmas / cost_model_of(device).unspecialized_fraction + time.epilogue;
  plan.predicted_s =
      warpgroup_seconds(problem, plan, cycles_of_waves(problem, ceil_div(plan.blocks, device.sm_count), one_tile, device), device);
  return plan;
}

}  // namespace

constinit const GemmKernel kBulkCopyWgmmaKernel = on_hopper({.composition = {.kernel = "bulk_copy_wgmma"},
                                                             .ladder = true,
                                                             .tiles = kBulkCopyWgmmaTiles,
                                                             .shared_bytes = bulk_copy_wgmma_shared_bytes,
                                                             .own_refusal = refuse_warpgroup,
                                                             .own_plan = plan,
                                                             .launch_cuda = cuda_launch<launch_bulk_copy_wgmma>()});

}  // namespace tilewave
