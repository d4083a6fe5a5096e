// What the activations ask of their arguments.
#include "kernels/ops/activation.h"

#include "kernels/core/contract.h"

namespace tilewave {

void check(const ActivationArgs& args) {
  const Contract contract(ActivationArgs::kOperation);
  contract.expect("y", args.y, shape_of(args.x));
}

void check(const ActivationBackwardArgs& args) {
  const Contract contract(ActivationBackwardArgs::kOperation);
  contract.expect("dy", args.dy, shape_of(args.x));
  contract.expect("dx", args.dx, shape_of(args.x));
}

}  // namespace tilewave
