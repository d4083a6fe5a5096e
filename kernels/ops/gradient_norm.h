// Global norm of all gradients and the factor that clips it.
//   state->gradient_norm = sqrt(sum of squares of every element) / loss_scale
//   state->clip_factor = clip_norm > 0 and gradient_norm > clip_norm ? clip_norm / gradient_norm : 1
//   state->gradient_scale = loss_scale
//   state->found_nonfinite = 1 where gradient_norm or state->loss is not finite (never reset here)
// Under loss scaling found_nonfinite is reset where both are finite, and the scale that the next step finds is
//   not finite: max(loss_scale / factor, floor), good_steps = 0; scale_exhausted = 1 where it was the floor already
//   finite:     good_steps + 1; after growth_interval of them loss_scale * factor, good_steps = 0
// Sums are in double precision, in an order that tensor, row and logical column alone decide: rows and columns of zeros (padding)
// change no bit.
// Where ranks have a share of the gradients each, it goes in two: sum_of_squares leaves state->sum_of_squares of the share, ranks sum it
// (kernels/ops/collective.h), and norm_of_squares does the rest with what it finds there.
#pragma once

#include <span>

#include "kernels/core/queue.h"
#include "kernels/core/step_state.h"
#include "kernels/core/view.h"
#include "kernels/gemm/cost/operation_model.h"
#include "kernels/gemm/tiling.h"

namespace tilewave {

struct LossScaling {
  bool enabled = false;
  std::int64_t growth_interval = 2000;
  double factor = 2.0;
  double floor = 1.0;
};

struct GradientNormArgs {
  static constexpr std::string_view kOperation = "gradient_norm";
  static constexpr OperationTime kTime{.launches = 3, .copy_share = &OperationModel::gradient_norm_share};
  std::span<const MatrixView> gradients;
  double clip_norm = 0.0;  // 0: no clipping
  LossScaling scaling;
  StepState* state = nullptr;
  MatrixView workspace;  // [1, gradient_norm_workspace_cols(gradients)] f64 on a GPU; a CPU needs none
};

struct SumOfSquaresArgs {
  static constexpr std::string_view kOperation = "sum_of_squares";
  static constexpr OperationTime kTime{.launches = 3, .copy_share = &OperationModel::gradient_norm_share};
  std::span<const MatrixView> gradients;
  StepState* state = nullptr;
  MatrixView workspace;  // as gradient_norm's
};

struct NormOfSquaresArgs {
  static constexpr std::string_view kOperation = "norm_of_squares";
  static constexpr OperationTime kTime{.launches = 1, .copy_share = &OperationModel::gradient_norm_share};
  double clip_norm = 0.0;
  LossScaling scaling;
  StepState* state = nullptr;
};

// A GPU sums blocks of rows and columns, then each tensor's blocks.
inline constexpr std::int64_t kGradientNormRows = 64, kGradientNormCols = 2048;
constexpr std::int64_t gradient_norm_blocks(const MatrixView& gradient) {
  return ceil_div(gradient.rows, kGradientNormRows) * ceil_div(gradient.cols, kGradientNormCols);
}
inline std::int64_t gradient_norm_workspace_cols(std::span<const MatrixView> gradients) {
  std::int64_t cols = 0;
  for (const MatrixView& gradient : gradients) cols += gradient_norm_blocks(gradient) + 1;
  return cols;
}

inline Cost cost(const SumOfSquaresArgs& args) {
  Cost total;
  for (const MatrixView& gradient : args.gradients) {
    total.flops += 2 * gradient.rows * gradient.cols;
    total.bytes += gradient.bytes();
  }
  return total;
}
inline Cost cost(const NormOfSquaresArgs&) { return {}; }
inline Cost cost(const GradientNormArgs& args) {
  return cost(SumOfSquaresArgs{.gradients = args.gradients, .state = args.state, .workspace = {}});
}
void check(const GradientNormArgs& args);
void check(const SumOfSquaresArgs& args);
void check(const NormOfSquaresArgs& args);
void run(CpuQueue& queue, const GradientNormArgs& args);
void run(CpuQueue& queue, const SumOfSquaresArgs& args);
void run(CpuQueue& queue, const NormOfSquaresArgs& args);
void run(CudaQueue& queue, const GradientNormArgs& args);
void run(CudaQueue& queue, const SumOfSquaresArgs& args);
void run(CudaQueue& queue, const NormOfSquaresArgs& args);

}  // namespace tilewave
