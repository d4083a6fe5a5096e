// The contract of attention, whoever computes it.
#include "kernels/ops/attention.h"

#include "kernels/core/contract.h"

namespace tilewave {
namespace {

// Of keys or values in so many heads.
template <class Args>
ViewShape keys(const Args& args, std::int64_t heads) {
  return {.rows = args.k.rows, .cols = args.q.cols / args.heads * heads, .dtype = args.q.dtype};
}

template <class Args>
void check_inputs(const Contract& contract, const Args& args) {
  TW_CHECK(args.heads > 0 && args.q.cols % args.heads == 0, Args::kOperation, ": ", args.q.cols, " columns do not divide into ", args.heads,
           " heads.");
  TW_CHECK(args.kv_heads >= 0 && args.heads % kv_heads_of(args) == 0, Args::kOperation, ": ", args.heads, " heads of queries cannot share ",
           args.kv_heads, " of keys and values; it takes a divisor.");
  TW_CHECK(args.scale >= 0.0 && std::isfinite(args.scale), Args::kOperation, ": scores times ", args.scale,
           "; the scale is above 0, or 0 for 1 / sqrt(the columns of a head).");
  contract.expect("k", args.k, keys(args, kv_heads_of(args)));
  contract.expect("v", args.v, keys(args, kv_heads_of(args)));
  contract.expect("segments", args.segments, {.rows = args.segments.rows, .cols = 4, .dtype = DType::i32});
  contract.expect_if_present("spans", args.spans, {.rows = 1, .cols = attention_spans(args.q.rows, args.k.rows), .dtype = DType::i32});
  TW_CHECK(args.dropout.probability >= 0.0 && args.dropout.probability < 1.0, Args::kOperation, ": a dropout of ", args.dropout.probability,
           " is not in [0, 1).");
  TW_CHECK(args.dropout.probability == 0.0 || args.dropout.state != nullptr, Args::kOperation,
           ": dropout needs the step's state for its draws.");
}

template <class Args>
ViewShape statistics(const Args& args) {
  return {.rows = args.q.rows, .cols = args.heads, .dtype = statistics_of(args.q.dtype)};
}

}  // namespace

void check(const AttentionArgs& args) {
  const Contract contract(AttentionArgs::kOperation);
  check_inputs(contract, args);
  contract.expect("out", args.out, shape_of(args.q));
  contract.expect_if_present("log_sum_exp", args.log_sum_exp, statistics(args));
}

void check(const AttentionBackwardArgs& args) {
  const Contract contract(AttentionBackwardArgs::kOperation);
  check_inputs(contract, args);
  contract.expect("out", args.out, shape_of(args.q));
  contract.expect("log_sum_exp", args.log_sum_exp, statistics(args));
  contract.expect("dout", args.dout, shape_of(args.q));
  contract.expect("dq", args.dq, shape_of(args.q));
  const ViewShape gradient = keys(args, args.dk.cols == args.q.cols ? args.heads : kv_heads_of(args));
  contract.expect("dk", args.dk, gradient);
  contract.expect("dv", args.dv, gradient);
  contract.expect_if_present("delta", args.delta, statistics(args));
}

}  // namespace tilewave
