// What SiLU asks of its arguments.
#include "kernels/ops/silu.h"

#include "kernels/core/contract.h"

namespace tilewave {

void check(const SiluArgs& args) {
  const Contract contract(SiluArgs::kOperation);
  contract.expect_if_present("up", args.up, shape_of(args.x));
  contract.expect("y", args.y, shape_of(args.x));
}

void check(const SiluBackwardArgs& args) {
  const Contract contract(SiluBackwardArgs::kOperation);
  contract.expect_if_present("up", args.up, shape_of(args.x));
  contract.expect("dy", args.dy, shape_of(args.x));
  contract.expect("dx", args.dx, shape_of(args.x));
  TW_CHECK(static_cast<bool>(args.up) == static_cast<bool>(args.dup), "silu_backward: up and dup come together; one of them is absent.");
  contract.expect_if_present("dup", args.dup, shape_of(args.x));
}

}  // namespace tilewave
