// What softmax asks of its arguments.
#include "kernels/ops/softmax.h"

#include "kernels/core/contract.h"

namespace tilewave {

void check(const SoftmaxArgs& args) {
  const Contract contract(SoftmaxArgs::kOperation);
  contract.expect("y", args.y, shape_of(args.x));
}

void check(const SoftmaxBackwardArgs& args) {
  const Contract contract(SoftmaxBackwardArgs::kOperation);
  contract.expect("dy", args.dy, shape_of(args.y));
  contract.expect("dx", args.dx, shape_of(args.y));
}

}  // namespace tilewave
