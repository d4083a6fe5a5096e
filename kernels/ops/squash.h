// Sigmoid and tanh, the functions that squash: element by element, by launches of their own.
//   forward:  y = 1 / (1 + e^-x), or tanh(x)
//   backward: dx = dy y (1 - y), or dy (1 - y^2); added to dx with accumulate
#pragma once

#include "kernels/core/queue.h"
#include "kernels/core/view.h"
#include "kernels/gemm/cost/operation_model.h"

namespace tilewave {

enum class Squash : std::uint8_t { sigmoid, tanh };

constexpr std::string_view name_of(Squash kind) { return kind == Squash::sigmoid ? "sigmoid" : "tanh"; }

struct SquashArgs {
  static constexpr std::string_view kOperation = "squash";
  static constexpr OperationTime kTime{.launches = 1, .copy_share = &OperationModel::squash_share};
  ConstMatrixView x;
  MatrixView y;  // may be x
  Squash kind = Squash::sigmoid;
};

struct SquashBackwardArgs {
  static constexpr std::string_view kOperation = "squash_backward";
  static constexpr OperationTime kTime{.launches = 1, .copy_share = &OperationModel::squash_backward_share};
  ConstMatrixView y;  // the forward pass's result
  ConstMatrixView dy;
  MatrixView dx;  // may be dy
  Squash kind = Squash::sigmoid;
  bool accumulate = false;
};

inline Cost cost(const SquashArgs& args) { return {.flops = args.y.rows * args.y.cols, .bytes = args.x.bytes() + args.y.bytes()}; }
inline Cost cost(const SquashBackwardArgs& args) {
  return {.flops = 3 * args.dx.rows * args.dx.cols,
          .bytes = args.y.bytes() + args.dy.bytes() + args.dx.bytes() * (args.accumulate ? 2 : 1)};
}
void check(const SquashArgs& args);
void check(const SquashBackwardArgs& args);
void run(CpuQueue& queue, const SquashArgs& args);
void run(CpuQueue& queue, const SquashBackwardArgs& args);
void run(CudaQueue& queue, const SquashArgs& args);
void run(CudaQueue& queue, const SquashBackwardArgs& args);

}  // namespace tilewave
