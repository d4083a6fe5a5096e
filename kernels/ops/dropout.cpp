// What dropout asks of its arguments.
#include "kernels/ops/dropout.h"

#include "kernels/core/contract.h"

namespace tilewave {

void check(const DropoutArgs& args) {
  const Contract contract(DropoutArgs::kOperation);
  contract.expect("x", args.x, shape_of(args.y));
  contract.expect_if_present("residual", args.residual, shape_of(args.y));
  TW_CHECK(args.probability >= 0.0 && args.probability < 1.0, "dropout: a probability of ", args.probability, " is not in [0, 1).");
  TW_CHECK(args.probability == 0.0 || args.state != nullptr, "dropout: a probability above 0 needs the step's state for its draws.");
}

}  // namespace tilewave
