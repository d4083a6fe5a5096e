// What add asks of its arguments.
#include "kernels/ops/add.h"

#include "kernels/core/contract.h"

namespace tilewave {

void check(const AddArgs& args) {
  const Contract contract(AddArgs::kOperation);
  contract.expect("y", args.y, shape_of(args.a));
  contract.expect_if_present("b", args.b, shape_of(args.a));
}

}  // namespace tilewave
