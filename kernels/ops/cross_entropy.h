// Mean cross entropy over the rows that count, and its gradient in place over the logits.
//   p = softmax(logits[r, 0 .. vocabulary));  y = label
//   loss(r) = (1 - smoothing) (-log p[y]) + smoothing / vocabulary * sum over v of (-log p[v])
//   state->loss += sum over rows of loss(r) / state->real_tokens, in double, in an order that the number of rows decides
//   dlogits[r, v] = (p[v] - (1 - smoothing) [v = y] - smoothing / vocabulary) * state->loss_scale / state->real_tokens
// Rows with a negative label count nothing and get zero gradients; so do columns from `vocabulary` on (padding). A label beyond
// the vocabulary throws on a CPU; a GPU cannot, and makes the row's loss and gradients NaN, which found_nonfinite then tells of.
#pragma once

#include <cstdint>

#include "kernels/core/queue.h"
#include "kernels/core/step_state.h"
#include "kernels/core/view.h"
#include "kernels/gemm/cost/operation_model.h"

namespace tilewave {

enum class LossGradient : std::uint8_t { none, in_place };

struct CrossEntropyArgs {
  static constexpr std::string_view kOperation = "cross_entropy";
  static constexpr OperationTime kTime{.launches = 2, .copy_share = &OperationModel::cross_entropy_share};
  MatrixView logits;       // [rows, padded vocabulary]; becomes its own gradient with LossGradient::in_place
  ConstMatrixView labels;  // [1, rows] i32
  std::int64_t vocabulary = 0;
  double smoothing = 0.0;
  LossGradient gradient = LossGradient::in_place;
  MatrixView row_loss;  // [1, rows]; f32 beside 16-bit logits, else their dtype
  MatrixView loss;      // [1, 1], row_loss's dtype: this launch's sum / real_tokens
  StepState* state = nullptr;
};

inline Cost cost(const CrossEntropyArgs& args) {
  return {.flops = 6 * args.logits.rows * args.logits.cols,
          .bytes = args.logits.bytes() * (args.gradient == LossGradient::in_place ? 2 : 1) + args.labels.bytes() + args.row_loss.bytes()};
}
void check(const CrossEntropyArgs& args);
void run(CpuQueue& queue, const CrossEntropyArgs& args);
void run(CudaQueue& queue, const CrossEntropyArgs& args);

}  // namespace tilewave
