// What RMS normalisation asks of its arguments.
#include "kernels/ops/rms_norm.h"

#include "kernels/core/contract.h"

namespace tilewave {
namespace {

template <class Args>
std::int64_t groups_of(const Args& args) {
  TW_CHECK(args.gamma.cols > 0 && args.x.cols % args.gamma.cols == 0, Args::kOperation, ": x has ", args.x.cols,
           " columns, which are no whole number of groups of gamma's ", args.gamma.cols, ".");
  return args.x.cols / args.gamma.cols;
}

}  // namespace

void check(const RmsNormArgs& args) {
  const Contract contract(RmsNormArgs::kOperation);
  const std::int64_t groups = groups_of(args);
  contract.expect("gamma", args.gamma, {.rows = 1, .cols = args.gamma.cols, .dtype = args.x.dtype});
  contract.expect("y", args.y, shape_of(args.x));
  contract.expect("rstd", args.rstd, {.rows = args.x.rows, .cols = groups, .dtype = statistics_of(args.x.dtype)});
}

void check(const RmsNormBackwardArgs& args) {
  const Contract contract(RmsNormBackwardArgs::kOperation);
  const DType statistics = statistics_of(args.x.dtype);
  const std::int64_t groups = groups_of(args), d = args.gamma.cols;
  contract.expect("gamma", args.gamma, {.rows = 1, .cols = d, .dtype = args.x.dtype});
  contract.expect("rstd", args.rstd, {.rows = args.x.rows, .cols = groups, .dtype = statistics});
  contract.expect("dy", args.dy, shape_of(args.x));
  contract.expect("dx", args.dx, shape_of(args.x));
  contract.expect("dgamma", args.dgamma, {.rows = 1, .cols = d, .dtype = statistics});
  contract.expect("partial", args.partial, {.rows = rms_norm_partial_rows(args.x.rows * groups), .cols = d, .dtype = statistics});
}

}  // namespace tilewave
