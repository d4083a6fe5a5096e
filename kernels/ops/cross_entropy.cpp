// What cross entropy asks of its arguments.
#include "kernels/ops/cross_entropy.h"

#include "kernels/core/contract.h"

namespace tilewave {

void check(const CrossEntropyArgs& args) {
  const Contract contract(CrossEntropyArgs::kOperation);
  const auto& logits = args.logits;
  const DType statistics = statistics_of(logits.dtype);
  TW_CHECK(args.vocabulary > 0 && args.vocabulary <= logits.cols, "cross_entropy: a vocabulary of ", args.vocabulary,
           " does not fit logits of ", logits.cols, " columns.");
  TW_CHECK(args.state != nullptr, "cross_entropy needs the step's state: it counts the real tokens and adds up the loss.");
  contract.expect("labels", args.labels, {.rows = 1, .cols = logits.rows, .dtype = DType::i32});
  contract.expect("row_loss", args.row_loss, {.rows = 1, .cols = logits.rows, .dtype = statistics});
  contract.expect("loss", args.loss, {.rows = 1, .cols = 1, .dtype = statistics});
}

}  // namespace tilewave
