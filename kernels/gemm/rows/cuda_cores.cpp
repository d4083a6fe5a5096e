// Model: gpu_model.h's; two loads for every product leave most of the arithmetic idle.
#include "kernels/gemm/rows/cuda_cores.h"

#include "kernels/gemm/rows/cuda_core_refusals.h"
#include "kernels/queue.h"

namespace tilewave {
namespace {

GemmPlan plan(const GemmProblem& problem, Tile tile, const DeviceInfo& device, int split) {
  return plan_on_gpu("cuda_cores", problem, tile, device,
                     {.multiply_adds_per_cycle = time_model_of(device).one_output_fraction * cuda_core_rate(problem, device),
                      .peak_multiply_adds_per_cycle = cuda_core_rate(problem, device),
                      .blocks_per_sm = 4,
                      .least_split = 0,
                      .split = split});
}

constexpr CudaGemmLaunch cuda_launch() {
  if constexpr (kHasCuda) return launch_cuda_cores;
  return nullptr;
}

}  // namespace

const GemmRow kCudaCoresRow = {.name = "cuda_cores",
                               .backend = Backend::cuda,
                               .tiles = kCudaCoresTiles,
                               .own_refusal = refuse_without_cuda_cores,
                               .plan = plan,
                               .launch_cuda = cuda_launch()};

}  // namespace tilewave
