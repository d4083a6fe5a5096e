// Model: gpu_model.h's; operands of less than 16 bytes' alignment cost instructions beside the products.
#include "kernels/gemm/rows/tensor_core_pipelined.h"

#include "kernels/gemm/rows/tensor_core_refusals.h"
#include "kernels/queue.h"

namespace tilewave {
namespace {

std::string refuse(const GemmProblem& problem, const DeviceInfo& device) {
  if (device.shared_bytes < kTensorCorePipelinedSharedBytes) {
    return sentence("its stages take ", kTensorCorePipelinedSharedBytes, " bytes of shared memory, and a block here has ",
                    device.shared_bytes, ".");
  }
  return refuse_without_tensor_cores(problem, device);
}

GemmPlan plan(const GemmProblem& problem, Tile tile, const DeviceInfo& device) {
  constexpr double kEfficiency[] = {0.9, 0.7, 0.6, 0.5};  // by alignment: 16, 8, 4, 2 bytes
  const std::int64_t alignment = std::min({problem.a_alignment, problem.b_alignment, std::int64_t{16}});
  const int narrow = alignment >= 16 ? 0 : alignment == 8 ? 1 : alignment == 4 ? 2 : 3;
  return plan_on_gpu("tensor_core_pipelined", problem, tile, device,
                     {.multiply_adds_per_cycle = kEfficiency[narrow] * mma_rate(problem, device),
                      .stages = kTensorCorePipelinedStages,
                      .depth = 128 / size_of(problem.operand_dtype),
                      .least_split = 512});
}

constexpr CudaGemmLaunch cuda_launch() {
  if constexpr (kHasCuda) return launch_tensor_core_pipelined;
  return nullptr;
}

}  // namespace

const GemmRow kTensorCorePipelinedRow = {.name = "tensor_core_pipelined",
                                         .backend = Backend::cuda,
                                         .tensor_cores = true,
                                         .tiles = kTensorCorePipelinedTiles,
                                         .refuse = refuse,
                                         .plan = plan,
                                         .launch_cuda = cuda_launch()};

}  // namespace tilewave
