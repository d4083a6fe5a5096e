// What rotary positions ask of their arguments.
#include "kernels/ops/rope.h"

#include "kernels/core/contract.h"

namespace tilewave {

void check(const RopeArgs& args) {
  const Contract contract(RopeArgs::kOperation);
  const std::int64_t d = args.table.cols;
  TW_CHECK(d > 0 && d % 2 == 0, "rope: the table has ", d, " columns; heads turn in pairs of columns, so their number must be even.");
  TW_CHECK(args.x.cols % d == 0, "rope: x has ", args.x.cols, " columns, which are no whole number of heads of ", d, ".");
  contract.expect("table", args.table, {.rows = args.table.rows, .cols = d, .dtype = statistics_of(args.x.dtype)});
  contract.expect("position_ids", args.position_ids, {.rows = 1, .cols = args.x.rows, .dtype = DType::i32});
  contract.expect("y", args.y, shape_of(args.x));
}

}  // namespace tilewave
