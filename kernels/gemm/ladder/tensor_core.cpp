// Model: gpu_model.h's; the products wait for every stage.
#include "kernels/gemm/ladder/tensor_core.h"

#include "kernels/core/queue.h"
#include "kernels/gemm/facts/has_cuda.h"
#include "kernels/gemm/sm80/tensor_core_refusals.h"

namespace tilewave {
namespace {

GemmPlan plan(const GemmProblem& problem, Tile tile, const DeviceInfo& device, int split) {
  return plan_on_gpu(problem, tile, device,
                     {.multiply_adds_per_cycle = cost_model_of(device).mma_one_stage_fraction * mma_rate(problem, device),
                      .peak_multiply_adds_per_cycle = mma_rate(problem, device),
                      .depth = 128 / size_of(problem.operand_dtype),
                      .min_split = 512,
                      .split = split});
}

}  // namespace

const GemmKernel kTensorCoreKernel = {.composition = {.kernel = "tensor_core"},
                                      .backend = Backend::cuda,
                                      .tensor_cores = true,
                                      .ladder = true,
                                      .tiles = kTensorCoreTiles,
                                      .own_refusal = refuse_without_tensor_cores,
                                      .own_plan = plan,
                                      .launch_cuda = cuda_launch<launch_tensor_core>()};

}  // namespace tilewave
