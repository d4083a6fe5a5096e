// Model: gpu_model.h's; operands of less than 16 bytes' alignment cost instructions beside the products.
#include "kernels/gemm/sm80/tensor_core_pipelined.h"

#include "kernels/core/queue.h"
#include "kernels/gemm/facts/has_cuda.h"
#include "kernels/gemm/sm80/tensor_core_refusals.h"

namespace tilewave {
namespace {

GemmPlan plan(const GemmProblem& problem, Tile tile, const DeviceInfo& device, int split) {
  const CostModel& time = cost_model_of(device);
  const std::int64_t alignment = std::min({problem.a_alignment, problem.b_alignment, std::int64_t{16}});
  const double fraction = alignment >= 16  ? time.mma_pipelined_fraction
                          : alignment == 8 ? time.mma_narrow_8_fraction
                          : alignment == 4 ? time.mma_narrow_4_fraction
                                           : time.mma_narrow_2_fraction;
  return plan_on_gpu(problem, tile, device,
                     {.multiply_adds_per_cycle = fraction * mma_rate(problem, device),
                      .peak_multiply_adds_per_cycle = mma_rate(problem, device),
                      .stages = kTensorCorePipelinedStages,
                      .depth = 128 / size_of(problem.operand_dtype),
                      .min_split = 512,
                      .split = split});
}

}  // namespace

const GemmKernel kTensorCorePipelinedKernel = {.composition = {.kernel = "tensor_core_pipelined"},
                                               .backend = Backend::cuda,
                                               .tensor_cores = true,
                                               .tiles = kTensorCorePipelinedTiles,
                                               .shared_bytes = [](Tile) { return kTensorCorePipelinedSharedBytes; },
                                               .own_refusal = refuse_without_tensor_cores,
                                               .own_plan = plan,
                                               .launch_cuda = cuda_launch<launch_tensor_core_pipelined>()};

}  // namespace tilewave
