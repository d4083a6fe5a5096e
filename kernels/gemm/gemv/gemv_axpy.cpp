// Model: gemv.cpp's.
#include "kernels/gemm/gemv/gemv_axpy.h"

#include "kernels/core/queue.h"
#include "kernels/gemm/facts/has_cuda.h"
#include "kernels/gemm/simt/cuda_core_refusals.h"

namespace tilewave {
namespace {

std::string refuse(const GemmProblem& problem, const DeviceInfo& device) {
  if (size_of(problem.operand_dtype) == 2) return "its operands are f32 or f64; gemv_axpy_mma takes bf16 and f16.";
  return refuse_gemv(problem, device, MatrixLies::across_k);
}

GemmPlan plan(const GemmProblem& problem, Tile tile, const DeviceInfo& device, int split) {
  const GemvSides sides = gemv_sides(problem, tile);
  const bool anywhere = sides.matrix_alignment < 16 || (sides.vectors_along_k && sides.vectors_alignment < 16);
  return plan_gemv(problem, tile, device,
                   {.rows = kGemvLine / size_of(problem.operand_dtype),
                    .depth = std::int64_t{4} * gemv_axpy_steps(gemv_axpy_columns(sides.vectors), anywhere),
                    .ctas_per_sm = 2,
                    .multiply_adds_per_cycle = cuda_core_rate(problem, device),
                    .matrix = MatrixLies::across_k,
                    .split = split});
}

}  // namespace

const GemmKernel kGemvAxpyKernel = {.composition = {.kernel = "gemv_axpy"},
                                    .backend = Backend::cuda,
                                    .tiles = kGemvAxpyTiles,
                                    .suits = suits_matrix_across_k,
                                    .own_refusal = refuse,
                                    .own_plan = plan,
                                    .launch_cuda = cuda_launch<launch_gemv_axpy>()};

}  // namespace tilewave
