// Model: that of tensor_core_persistent, with more of mma.sync's rate left to the products, and less to do where the engine stores sums.
#include "kernels/gemm/sm80/bulk_copy_mma.h"

#include "kernels/core/queue.h"
#include "kernels/gemm/facts/has_cuda.h"
#include "kernels/gemm/sm80/tensor_core_refusals.h"

namespace tilewave {
namespace {

std::string refuse(const GemmProblem& problem, const DeviceInfo& device) {
  if (device.capability < 90) return "it needs TMA of compute capability 9.0 or newer.";
  const std::string too_long = refuse_beyond_coordinates(problem);
  return too_long.empty() ? refuse_persistent(problem, device) : too_long;
}

GemmPlan plan(const GemmProblem& problem, Tile tile, const DeviceInfo& device, int split) {
  const CostModel& time = cost_model_of(device);
  const bool engine_stores = problem.d_alignment >= 16 && stores_accumulators(problem);
  return plan_on_gpu(problem, tile, device,
                     {.multiply_adds_per_cycle = time.mma_bulk_copy_fraction * mma_rate(problem, device),
                      .peak_multiply_adds_per_cycle = mma_rate(problem, device),
                      .stages = kBulkCopyMmaStages,
                      .depth = kKTile,
                      .min_split = 512,
                      .max_ctas = device.sm_count,
                      .cuts_the_rest = true,
                      .split = split,
                      .store_cycles = engine_stores ? time.mma_bulk_copy_store_cycles : 0.0});
}

}  // namespace

const GemmKernel kBulkCopyMmaKernel = {.composition = {.kernel = "bulk_copy_mma"},
                                       .backend = Backend::cuda,
                                       .tensor_cores = true,
                                       .tiles = kBulkCopyMmaTiles,
                                       .shared_bytes = bulk_copy_mma_shared_bytes,
                                       .own_refusal = refuse,
                                       .own_plan = plan,
                                       .launch_cuda = cuda_launch<launch_bulk_copy_mma>()};

}  // namespace tilewave
