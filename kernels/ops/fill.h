// y = value, everywhere.
#pragma once

#include "kernels/core/queue.h"
#include "kernels/core/view.h"
#include "kernels/gemm/cost/operation_model.h"

namespace tilewave {

struct FillArgs {
  static constexpr std::string_view kOperation = "fill";
  static constexpr OperationTime kTime{.launches = 1, .copy_share = &OperationModel::other_share};
  MatrixView y;
  double value = 0.0;
};

inline Cost cost(const FillArgs& args) { return {.flops = 0, .bytes = args.y.bytes()}; }
void run(CpuQueue& queue, const FillArgs& args);
void run(CudaQueue& queue, const FillArgs& args);

}  // namespace tilewave
