// y = a + b, element by element; a copy where b is absent. y may be a or b.
#pragma once

#include "kernels/core/queue.h"
#include "kernels/core/view.h"
#include "kernels/gemm/cost/operation_model.h"

namespace tilewave {

struct AddArgs {
  static constexpr std::string_view kOperation = "add";
  static constexpr OperationTime kTime{.launches = 1, .copy_share = &OperationModel::add_share};
  ConstMatrixView a;
  ConstMatrixView b;
  MatrixView y;
};

inline Cost cost(const AddArgs& args) {
  return {.flops = args.b ? args.y.rows * args.y.cols : 0, .bytes = args.a.bytes() + args.b.bytes() + args.y.bytes()};
}
void check(const AddArgs& args);
void run(CpuQueue& queue, const AddArgs& args);
void run(CudaQueue& queue, const AddArgs& args);

}  // namespace tilewave
