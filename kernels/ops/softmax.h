// Softmax over each row's columns, as an operation of its own.
//   forward:  y[c] = e^(x[c] - max(x)) / sum over c' of e^(x[c'] - max(x))
//   backward: dx = y (dy - sum(dy y)), or dx + that with accumulate
#pragma once

#include "kernels/core/queue.h"
#include "kernels/core/view.h"
#include "kernels/gemm/cost/operation_model.h"

namespace tilewave {

struct SoftmaxArgs {
  static constexpr std::string_view kOperation = "softmax";
  static constexpr OperationTime kTime{.launches = 1, .copy_share = &OperationModel::softmax_share};
  ConstMatrixView x;  // [rows, cols]
  MatrixView y;       // [rows, cols]; may be x
};

struct SoftmaxBackwardArgs {
  static constexpr std::string_view kOperation = "softmax_backward";
  static constexpr OperationTime kTime{.launches = 1, .copy_share = &OperationModel::softmax_backward_share};
  ConstMatrixView y;   // [rows, cols], forward's
  ConstMatrixView dy;  // [rows, cols]
  MatrixView dx;       // [rows, cols]; may be dy
  bool accumulate = false;
};

inline Cost cost(const SoftmaxArgs& args) { return {.flops = 5 * args.y.rows * args.y.cols, .bytes = args.x.bytes() + args.y.bytes()}; }
inline Cost cost(const SoftmaxBackwardArgs& args) {
  return {.flops = 4 * args.dx.rows * args.dx.cols,
          .bytes = args.y.bytes() + args.dy.bytes() + args.dx.bytes() * (args.accumulate ? 2 : 1)};
}
void check(const SoftmaxArgs& args);
void check(const SoftmaxBackwardArgs& args);
void run(CpuQueue& queue, const SoftmaxArgs& args);
void run(CpuQueue& queue, const SoftmaxBackwardArgs& args);
void run(CudaQueue& queue, const SoftmaxArgs& args);
void run(CudaQueue& queue, const SoftmaxBackwardArgs& args);

}  // namespace tilewave
