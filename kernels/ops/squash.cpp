// What sigmoid and tanh ask of their arguments.
#include "kernels/ops/squash.h"

#include "kernels/core/contract.h"

namespace tilewave {

void check(const SquashArgs& args) {
  const Contract contract(SquashArgs::kOperation);
  contract.expect("y", args.y, shape_of(args.x));
}

void check(const SquashBackwardArgs& args) {
  const Contract contract(SquashBackwardArgs::kOperation);
  contract.expect("dy", args.dy, shape_of(args.y));
  contract.expect("dx", args.dx, shape_of(args.y));
}

}  // namespace tilewave
