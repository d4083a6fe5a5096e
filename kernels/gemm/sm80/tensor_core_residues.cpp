// Model: that of tensor_core_persistent's tile, for the tiles that residues make.
#include "kernels/gemm/sm80/tensor_core_residues.h"

#include "kernels/core/queue.h"
#include "kernels/gemm/facts/has_cuda.h"
#include "kernels/gemm/sm80/tensor_core_refusals.h"

namespace tilewave {
namespace {

std::string refuse(const GemmProblem& problem, const DeviceInfo& device) {
  const SidesInMemory sides = sides_in_memory(problem);
  if (problem.operand_dtype == DType::f32) return "its operands are bf16 or f16.";
  if (sides.col_alignment < 16 || sides.cols_along_k) {
    return "the operand that D's columns come from lies across K, and its rows start on 16 bytes.";
  }
  if (sides.row_alignment >= 16) return "rows that start on 16 bytes need no residues.";
  if (problem.epilogue.bias_gradient) return "it sums no bias gradient.";
  return refuse_without_tensor_cores(problem, device);
}

GemmPlan plan(const GemmProblem& problem, Tile tile, const DeviceInfo& device, int split) {
  const SidesInMemory sides = sides_in_memory(problem);
  const std::int64_t tile_rows = in_memory(problem, tile).rows;
  const std::int64_t blocks = resident_blocks(2, kTensorCoreResiduesSharedBytes, device);
  const ResidueTiling tiling = residue_tiling(sides.rows, std::min<std::int64_t>(sides.row_alignment, 16), sides.rows_along_k, tile_rows);
  return plan_on_gpu(problem, tile, device,
                     {.multiply_adds_per_cycle = 0.95 * cost_model_of(device).mma_fraction * mma_rate(problem, device),
                      .peak_multiply_adds_per_cycle = mma_rate(problem, device),
                      .blocks_per_sm = static_cast<int>(blocks),
                      .stages = kTensorCoreResiduesStages,
                      .depth = 128 / size_of(problem.operand_dtype),
                      .min_split = sides.rows_along_k ? 512 : 0,
                      .split = split,
                      .rows_covered = tiling.tiles_down * tile_rows});
}

}  // namespace

const GemmKernel kTensorCoreResiduesKernel = {.composition = {.kernel = "tensor_core_residues"},
                                              .backend = Backend::cuda,
                                              .tensor_cores = true,
                                              .tiles = kTensorCoreResiduesTiles,
                                              .shared_bytes = [](Tile) { return kTensorCoreResiduesSharedBytes; },
                                              .own_refusal = refuse,
                                              .own_plan = plan,
                                              .launch_cuda = cuda_launch<launch_tensor_core_residues>()};

}  // namespace tilewave
