// Model: gemv.cpp's; its products are no limit.
#include "kernels/gemm/gemv/gemv_dot_mma.h"

#include "kernels/core/queue.h"
#include "kernels/gemm/facts/has_cuda.h"

namespace tilewave {
namespace {

std::string refuse(const GemmProblem& problem, const DeviceInfo& device) {
  if (size_of(problem.operand_dtype) != 2) return "its operands are bf16 or f16.";
  if (problem.epilogue.bias_gradient) return "it sums no bias gradient; gemv_axpy_mma does, and tiles do.";
  return refuse_gemv(problem, device, MatrixLies::along_k);
}

GemmPlan plan(const GemmProblem& problem, Tile tile, const DeviceInfo& device, int split) {
  const GemvSides sides = gemv_sides(problem, tile);
  const bool words = sides.matrix_alignment >= 16 && sides.vectors_along_k && sides.vectors_alignment >= 16;
  const int steps = words ? kGemvDotMmaSteps : kGemvDotMmaSteps / 2;
  return plan_gemv(problem, tile, device,
                   {.rows = kGemvDotMmaRows,
                    .depth = std::int64_t{kGemvDotMmaDepth} * steps,
                    .ctas_per_sm = gemv_dot_mma_ctas(gemv_dot_mma_columns(sides.vectors)),
                    .split = split});
}

}  // namespace

const GemmKernel kGemvDotMmaKernel = {.composition = {.kernel = "gemv_dot_mma"},
                                      .backend = Backend::cuda,
                                      .tensor_cores = true,
                                      .tiles = kGemvTiles,
                                      .suits = suits_matrix_along_k,
                                      .own_refusal = refuse,
                                      .own_plan = plan,
                                      .launch_cuda = cuda_launch<launch_gemv_dot_mma>()};

}  // namespace tilewave
