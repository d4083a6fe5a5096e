// SiLU, alone or as a gate (Shazeer, "GLU variants improve Transformer", 2020: SwiGLU), element by element.
//   forward:  y = silu(x) up, or silu(x) where up is absent
//   backward: dx = dy up silu'(x);  dup = dy silu(x)
#pragma once

#include "kernels/core/queue.h"
#include "kernels/core/view.h"
#include "kernels/gemm/cost/operation_model.h"

namespace tilewave {

struct SiluArgs {
  static constexpr std::string_view kOperation = "silu";
  static constexpr OperationTime kTime{.launches = 1, .copy_share = &OperationModel::silu_share};
  ConstMatrixView x;
  ConstMatrixView up;  // x's shape, or absent
  MatrixView y;
};

struct SiluBackwardArgs {
  static constexpr std::string_view kOperation = "silu_backward";
  static constexpr OperationTime kTime{.launches = 1, .copy_share = &OperationModel::silu_backward_share};
  ConstMatrixView x;
  ConstMatrixView up;  // absent as in the forward pass
  ConstMatrixView dy;
  MatrixView dx;   // may be dy
  MatrixView dup;  // absent where up is; not dy
};

inline Cost cost(const SiluArgs& args) {
  return {.flops = (args.up ? 2 : 1) * args.y.rows * args.y.cols, .bytes = args.x.bytes() + args.up.bytes() + args.y.bytes()};
}
inline Cost cost(const SiluBackwardArgs& args) {
  return {.flops = (args.up ? 4 : 2) * args.dx.rows * args.dx.cols,
          .bytes = args.x.bytes() + args.up.bytes() + args.dy.bytes() + args.dx.bytes() + args.dup.bytes()};
}
void check(const SiluArgs& args);
void check(const SiluBackwardArgs& args);
void run(CpuQueue& queue, const SiluArgs& args);
void run(CpuQueue& queue, const SiluBackwardArgs& args);
void run(CudaQueue& queue, const SiluArgs& args);
void run(CudaQueue& queue, const SiluBackwardArgs& args);

}  // namespace tilewave
