// y = residual + keep(row, column) * x / (1 - probability), residual being 0 where absent.
// keep is a function of (seed, step, first_site + site, logical row, logical column) alone (math/random.h), rows counted from the step
// state's first one of that side, so the backward pass applies the same arguments to dy, and neither pitch, padding nor the number of
// threads changes a draw. y may be x or residual.
#pragma once

#include <cstdint>

#include "kernels/core/queue.h"
#include "kernels/core/step_state.h"
#include "kernels/core/view.h"
#include "kernels/gemm/cost/operation_model.h"

namespace tilewave {

struct DropoutArgs {
  static constexpr std::string_view kOperation = "dropout";
  static constexpr OperationTime kTime{.launches = 1, .copy_share = &OperationModel::dropout_share};
  ConstMatrixView x;
  ConstMatrixView residual;
  MatrixView y;
  double probability = 0.0;            // of an element to be dropped, in [0, 1)
  std::uint32_t site = 0;              // which dropout of the pass this is; the step state says how many sites the passes before it had
  TokenSide side = TokenSide::target;  // whose rows these are
  const StepState* state = nullptr;
};

inline Cost cost(const DropoutArgs& args) {
  return {.flops = 2 * args.y.rows * args.y.cols, .bytes = args.x.bytes() + args.residual.bytes() + args.y.bytes()};
}
void check(const DropoutArgs& args);
void run(CpuQueue& queue, const DropoutArgs& args);
void run(CudaQueue& queue, const DropoutArgs& args);

}  // namespace tilewave
