// Model: gpu_model.h's.
#include "kernels/gemm/simt/shared_memory_tiles.h"

#include "kernels/core/queue.h"
#include "kernels/gemm/facts/has_cuda.h"
#include "kernels/gemm/simt/cuda_core_refusals.h"

namespace tilewave {
namespace {

GemmPlan plan(const GemmProblem& problem, Tile tile, const DeviceInfo& device, int split) {
  return plan_on_gpu(problem, tile, device,
                     {.multiply_adds_per_cycle = cost_model_of(device).cuda_core_fraction * cuda_core_rate(problem, device),
                      .peak_multiply_adds_per_cycle = cuda_core_rate(problem, device),
                      .depth = kSharedMemoryTilesDepth,
                      .min_split = 64,
                      .split = split});
}

}  // namespace

const GemmKernel kSharedMemoryTilesKernel = {.composition = {.kernel = "shared_memory_tiles"},
                                             .backend = Backend::cuda,
                                             .tiles = kSharedMemoryTiles,
                                             .own_refusal = refuse_without_cuda_cores,
                                             .own_plan = plan,
                                             .launch_cuda = cuda_launch<launch_shared_memory_tiles>()};

}  // namespace tilewave
