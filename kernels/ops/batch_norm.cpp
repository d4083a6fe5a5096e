// What batch normalization asks of its arguments.
#include "kernels/ops/batch_norm.h"

#include "kernels/core/contract.h"

namespace tilewave {
namespace {

// The values of a channel.
template <class Args>
std::int64_t values_of(const Args& args) {
  const std::int64_t channels = args.gamma.cols;
  TW_CHECK(channels > 0, Args::kOperation, ": gamma has no columns; it must have one for each channel.");
  if (args.layout == ImageLayout::nhwc) {
    TW_CHECK(args.x.cols == channels, Args::kOperation, ": x has ", args.x.cols, " columns and gamma ", channels,
             "; in nhwc each column is a channel.");
    return args.x.rows;
  }
  TW_CHECK(args.x.rows % channels == 0, Args::kOperation, ": x has ", args.x.rows, " rows and gamma ", channels,
           " columns; in nchw rows are the channels of whole images.");
  return args.x.rows / channels * args.x.cols;
}

template <class Args>
void expect_partial(const Contract& contract, const Args& args) {
  const std::int64_t channels = args.gamma.cols;
  contract.expect("partial", args.partial,
                  {.rows = batch_norm_partial_rows(args.x.rows, args.x.cols, channels, args.layout),
                   .cols = channels,
                   .dtype = statistics_of(args.x.dtype)});
}

}  // namespace

void check(const BatchNormArgs& args) {
  const Contract contract(BatchNormArgs::kOperation);
  const std::int64_t values = values_of(args);
  const ViewShape parameter{.rows = 1, .cols = args.gamma.cols, .dtype = args.x.dtype};
  const ViewShape statistic{.rows = 1, .cols = args.gamma.cols, .dtype = statistics_of(args.x.dtype)};
  contract.expect("gamma", args.gamma, parameter);
  contract.expect("beta", args.beta, parameter);
  contract.expect("y", args.y, shape_of(args.x));
  contract.expect("mean", args.mean, statistic);
  contract.expect("rstd", args.rstd, statistic);
  TW_CHECK(static_cast<bool>(args.running_mean) == static_cast<bool>(args.running_variance),
           "batch_norm: running_mean and running_variance come together; one of them is absent.");
  contract.expect_if_present("running_mean", args.running_mean, statistic);
  contract.expect_if_present("running_variance", args.running_variance, statistic);
  if (args.mode == BatchNormMode::evaluation) {
    TW_CHECK(args.running_mean, "batch_norm: an evaluation takes running_mean and running_variance, which are absent.");
    return;
  }
  TW_CHECK(values > 1, "batch_norm: a channel of x has ", values, values == 1 ? " value" : " values",
           "; its variance takes two at least. An evaluation takes any number.");
  expect_partial(contract, args);
}

void check(const BatchNormBackwardArgs& args) {
  const Contract contract(BatchNormBackwardArgs::kOperation);
  values_of(args);
  const ViewShape statistic{.rows = 1, .cols = args.gamma.cols, .dtype = statistics_of(args.x.dtype)};
  contract.expect("gamma", args.gamma, {.rows = 1, .cols = args.gamma.cols, .dtype = args.x.dtype});
  contract.expect("mean", args.mean, statistic);
  contract.expect("rstd", args.rstd, statistic);
  contract.expect("dy", args.dy, shape_of(args.x));
  contract.expect("dx", args.dx, shape_of(args.x));
  contract.expect("dgamma", args.dgamma, statistic);
  contract.expect("dbeta", args.dbeta, statistic);
  expect_partial(contract, args);
}

}  // namespace tilewave
