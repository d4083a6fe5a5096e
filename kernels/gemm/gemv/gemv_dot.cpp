// Model: gemv.cpp's.
#include "kernels/gemm/gemv/gemv_dot.h"

#include <algorithm>

#include "kernels/core/queue.h"
#include "kernels/gemm/facts/has_cuda.h"
#include "kernels/gemm/simt/cuda_core_refusals.h"

namespace tilewave {
namespace {

bool suits(const GemmProblem& problem, Tile tile) {
  return suits_matrix_along_k(problem, tile) && gemv_sides(problem, tile).vectors <= gemv_dot_vectors(problem.operand_dtype);
}

std::string refuse(const GemmProblem& problem, const DeviceInfo& device) {
  if (problem.epilogue.bias_gradient) return "it sums no bias gradient; gemv_axpy does, and tiles do.";
  const std::string refusal = refuse_gemv(problem, device, MatrixLies::along_k);
  if (!refusal.empty() || std::ranges::any_of(kGemvTiles, [&](Tile tile) { return suits(problem, tile); })) return refusal;
  return concat("of 16-bit elements it takes 1 to ", gemv_dot_vectors(problem.operand_dtype), " outputs or tokens; here M = ", problem.m,
                " and N = ", problem.n, ".");
}

GemmPlan plan(const GemmProblem& problem, Tile tile, const DeviceInfo& device, int split) {
  const GemvSides sides = gemv_sides(problem, tile);
  const DType dtype = problem.operand_dtype;
  const bool words = sides.matrix_alignment >= 16 && sides.vectors_along_k && sides.vectors_alignment >= 16;
  const int columns = gemv_columns(sides.vectors, dtype), rows = gemv_dot_rows(columns, dtype);
  return plan_gemv(problem, tile, device,
                   {.rows = rows,
                    .depth = 32 * (16 / size_of(dtype)) * gemv_dot_steps(columns, dtype, !words),
                    .ctas_per_sm = 2,
                    .multiply_adds_per_cycle = cuda_core_rate(problem, device),
                    .split = split});
}

}  // namespace

const GemmKernel kGemvDotKernel = {.composition = {.kernel = "gemv_dot"},
                                   .backend = Backend::cuda,
                                   .tiles = kGemvTiles,
                                   .suits = suits,
                                   .own_refusal = refuse,
                                   .own_plan = plan,
                                   .launch_cuda = cuda_launch<launch_gemv_dot>()};

}  // namespace tilewave
