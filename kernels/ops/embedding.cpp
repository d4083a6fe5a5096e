// What the embedding asks of its arguments.
#include "kernels/ops/embedding.h"

#include "kernels/core/contract.h"

namespace tilewave {

void check(const EmbeddingArgs& args) {
  const Contract contract(EmbeddingArgs::kOperation);
  const auto& y = args.y;
  contract.expect("table", args.table, {.rows = args.table.rows, .cols = y.cols, .dtype = y.dtype});
  contract.expect_if_present("positions", args.positions, {.rows = args.positions.rows, .cols = y.cols, .dtype = y.dtype});
  contract.expect("ids", args.ids, {.rows = 1, .cols = y.rows, .dtype = DType::i32});
  contract.expect("position_ids", args.position_ids, {.rows = 1, .cols = y.rows, .dtype = DType::i32});
}

void check(const EmbeddingBackwardArgs& args) {
  const Contract contract(EmbeddingBackwardArgs::kOperation);
  const auto& dy = args.dy;
  const DType gradient = statistics_of(dy.dtype);
  const std::int64_t positions = args.dpositions ? args.dpositions.rows : 0;
  contract.expect("dtable", args.dtable, {.rows = args.dtable.rows, .cols = dy.cols, .dtype = gradient});
  contract.expect_if_present("dpositions", args.dpositions, {.rows = positions, .cols = dy.cols, .dtype = gradient});
  contract.expect("ids", args.ids, {.rows = 1, .cols = dy.rows, .dtype = DType::i32});
  contract.expect("position_ids", args.position_ids, {.rows = 1, .cols = dy.rows, .dtype = DType::i32});
  const std::int64_t order_cols = embedding_order_cols(dy.rows, args.dtable.rows, positions);
  TW_CHECK(args.order.rows == 2 && args.order.cols >= order_cols && args.order.dtype == DType::i32, "embedding_backward: order is ",
           shape_of(args.order), "; it must be i32 [2, ", order_cols, "] or wider.");
}

}  // namespace tilewave
