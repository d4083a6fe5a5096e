// y = x, rounded to y's type (to nearest, ties to even). Between any two floating-point types.
#pragma once

#include "kernels/core/queue.h"
#include "kernels/core/view.h"
#include "kernels/gemm/cost/operation_model.h"

namespace tilewave {

struct ConvertArgs {
  static constexpr std::string_view kOperation = "convert";
  static constexpr OperationTime kTime{.launches = 1, .copy_share = &OperationModel::other_share};
  ConstMatrixView x;
  MatrixView y;
};

// Throws Error where shapes differ or a type is no floating-point one.
void check(const ConvertArgs& args);

inline Cost cost(const ConvertArgs& args) { return {.flops = 0, .bytes = args.x.bytes() + args.y.bytes()}; }
void run(CpuQueue& queue, const ConvertArgs& args);
void run(CudaQueue& queue, const ConvertArgs& args);

}  // namespace tilewave
