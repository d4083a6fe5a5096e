// ReLU and GELU (tanh and erf forms, torch.nn.functional's) where no GEMM's epilogue can carry them.
//   forward:  y = f(x)
//   backward: dx = dy * f'(x), or dx + that with accumulate; for relu x may be the activation's output
#pragma once

#include "kernels/core/queue.h"
#include "kernels/core/view.h"
#include "kernels/gemm/cost/operation_model.h"
#include "kernels/gemm/problem.h"

namespace tilewave {

struct ActivationArgs {
  static constexpr std::string_view kOperation = "activation";
  static constexpr OperationTime kTime{.launches = 1, .copy_share = &OperationModel::activation_share};
  ConstMatrixView x;
  MatrixView y;
  Activation activation = Activation::relu;
};

struct ActivationBackwardArgs {
  static constexpr std::string_view kOperation = "activation_backward";
  static constexpr OperationTime kTime{.launches = 1, .copy_share = &OperationModel::activation_backward_share};
  ConstMatrixView x;
  ConstMatrixView dy;
  MatrixView dx;  // may be dy
  Activation activation = Activation::relu;
  bool accumulate = false;
};

inline Cost cost(const ActivationArgs& args) { return {.flops = args.y.rows * args.y.cols, .bytes = args.x.bytes() + args.y.bytes()}; }
inline Cost cost(const ActivationBackwardArgs& args) {
  return {.flops = 2 * args.dx.rows * args.dx.cols,
          .bytes = args.x.bytes() + args.dy.bytes() + args.dx.bytes() * (args.accumulate ? 2 : 1)};
}
void check(const ActivationArgs& args);
void check(const ActivationBackwardArgs& args);
void run(CpuQueue& queue, const ActivationArgs& args);
void run(CpuQueue& queue, const ActivationBackwardArgs& args);
void run(CudaQueue& queue, const ActivationArgs& args);
void run(CudaQueue& queue, const ActivationBackwardArgs& args);

}  // namespace tilewave
