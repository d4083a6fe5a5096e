// Model: gemv.cpp's; its products are no limit.
#include "kernels/gemm/gemv/gemv_axpy_mma.h"

#include <algorithm>

#include "kernels/core/queue.h"
#include "kernels/gemm/facts/has_cuda.h"

namespace tilewave {
namespace {

// The bias gradient sums B: as the matrix it needs a column beside the vectors'.
bool has_column_for_sums(const GemmProblem& problem, Tile tile) {
  const GemvSides sides = gemv_sides(problem, tile);
  return !problem.epilogue.bias_gradient || sides.matrix_is_a || sides.vectors < kMaxVectors;
}

bool suits(const GemmProblem& problem, Tile tile) { return suits_matrix_across_k(problem, tile) && has_column_for_sums(problem, tile); }

std::string refuse(const GemmProblem& problem, const DeviceInfo& device) {
  if (size_of(problem.operand_dtype) != 2) return "its operands are bf16 or f16; gemv_axpy takes f32 and f64.";
  const std::string refusal = refuse_gemv(problem, device, MatrixLies::across_k);
  if (!refusal.empty() || std::ranges::any_of(kGemvAxpyMmaTiles, [&](Tile tile) { return suits(problem, tile); })) return refusal;
  return concat("beside a bias gradient it takes 1 to ", kMaxVectors - 1, " inputs, not ", kMaxVectors, ".");
}

GemmPlan plan(const GemmProblem& problem, Tile tile, const DeviceInfo& device, int split) {
  const GemvSides sides = gemv_sides(problem, tile);
  const bool words = sides.matrix_alignment >= 16 && (!sides.vectors_along_k || sides.vectors_alignment >= 16);
  return plan_gemv(problem, tile, device,
                   {.rows = kGemvAxpyMmaRows,
                    .depth = words ? kGemvAxpyMmaDepth : kGemvAxpyMmaDepth / 2,
                    .ctas_per_sm = 2,
                    .matrix = MatrixLies::across_k,
                    .split = split});
}

}  // namespace

const GemmKernel kGemvAxpyMmaKernel = {.composition = {.kernel = "gemv_axpy_mma"},
                                       .backend = Backend::cuda,
                                       .tensor_cores = true,
                                       .tiles = kGemvAxpyMmaTiles,
                                       .suits = suits,
                                       .own_refusal = refuse,
                                       .own_plan = plan,
                                       .launch_cuda = cuda_launch<launch_gemv_axpy_mma>()};

}  // namespace tilewave
