// Global norm of all gradients and the factor that clips it.
//   state->gradient_norm = sqrt(sum of squares of every element) / loss_scale
//   state->clip_factor = clip_norm > 0 and gradient_norm > clip_norm ? clip_norm / gradient_norm : 1
//   state->found_nonfinite = 1 where gradient_norm or state->loss is not finite (never reset here)
// Sums run over logical columns of a row, then over rows in order, then over tensors in order, in double precision: rows and
// columns of zeros (padding) change no bit.
#pragma once

#include <span>

#include "kernels/queue.h"
#include "kernels/step_state.h"
#include "kernels/view.h"

namespace tilewave {

struct GradientNormArgs {
  static constexpr std::string_view kOperation = "gradient_norm";
  std::span<const MatrixView> gradients;
  double clip_norm = 0.0;  // 0: no clipping
  StepState* state = nullptr;
};

inline Cost cost(const GradientNormArgs& args) {
  Cost total;
  for (const MatrixView& gradient : args.gradients) {
    total.flops += 2 * gradient.rows * gradient.cols;
    total.bytes += gradient.bytes();
  }
  return total;
}
void run(CpuQueue& queue, const GradientNormArgs& args);
void run(CudaQueue& queue, const GradientNormArgs& args);

}  // namespace tilewave
