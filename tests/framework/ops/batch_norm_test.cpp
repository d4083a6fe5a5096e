// Batch normalization in both layouts, in training and in an evaluation: gradients, those that are added, and what happens to running
// statistics.
#include "framework/ops/batch_norm.h"

#include "framework/ops/add.h"
#include "tests/framework/support.h"

namespace tilewave {
namespace {

using namespace testing_support;

struct BatchNormKind {
  ImageLayout layout;
  BatchNormMode mode;
  BatchNormPasses passes;
};

class BatchNormOperation : public Fp64Test, public testing::WithParamInterface<BatchNormKind> {
 protected:
  Variable apply(Context& c, const Variable& of) {
    return batch_norm(c, {.x = of,
                          .gamma = gamma,
                          .beta = beta,
                          .running_mean = running_mean,
                          .running_variance = running_variance,
                          .layout = GetParam().layout,
                          .mode = GetParam().mode,
                          .passes = GetParam().passes});
  }

  static constexpr Images kImages{.count = 2, .channels = 3, .height = 2, .width = 2};
  Images images() const {
    Images images = kImages;
    images.layout = GetParam().layout;
    return images;
  }

  const Variable x = leaf({images().rows(), images().cols()}, 1), gamma = leaf({1, 3}, 2), beta = leaf({1, 3}, 3);
  const Tensor running_mean = tensor_of({1, 3}, {0.5, -0.25, 0.0}), running_variance = tensor_of({1, 3}, {1.5, 0.75, 2.0});
};

TEST_P(BatchNormOperation, NormalizesAndMovesWhatRuns) {
  const HostMatrix in(context, x), weight(context, gamma), bias(context, beta);
  const bool wide = GetParam().layout == ImageLayout::nhwc, training = GetParam().mode == BatchNormMode::training;
  std::vector<double> mean = read_elements(context, running_mean), variance = read_elements(context, running_variance);
  const std::vector<double> first_mean = mean, first_variance = variance;
  const auto channel = [&](std::int64_t r, std::int64_t c) { return static_cast<std::size_t>(wide ? c : r % 3); };
  const auto each = [&](const auto& fn) {
    for (std::int64_t r = 0; r < in.rows(); ++r) {
      for (std::int64_t c = 0; c < in.cols(); ++c) fn(r, c);
    }
  };
  if (training) {
    mean.assign(3, 0.0);
    variance.assign(3, 0.0);
    each([&](std::int64_t r, std::int64_t c) { mean[channel(r, c)] += in(r, c) / 8.0; });
    each([&](std::int64_t r, std::int64_t c) { variance[channel(r, c)] += std::pow(in(r, c) - mean[channel(r, c)], 2) / 8.0; });
  }
  HostMatrix expected(in.rows(), in.cols());
  each([&](std::int64_t r, std::int64_t c) {
    const std::size_t at = channel(r, c);
    const auto column = static_cast<std::int64_t>(at);
    expected(r, c) = (in(r, c) - mean[at]) / std::sqrt(variance[at] + 1e-5) * weight(0, column) + bias(0, column);
  });
  expect_near(HostMatrix(context, apply(context, x)), expected);
  const std::vector<double> moved_mean = read_elements(context, running_mean), moved_variance = read_elements(context, running_variance);
  for (std::size_t c = 0; c < 3; ++c) {
    EXPECT_NEAR(moved_mean[c], training ? 0.9 * first_mean[c] + 0.1 * mean[c] : first_mean[c], 1e-14);
    EXPECT_NEAR(moved_variance[c], training ? 0.9 * first_variance[c] + 0.1 * variance[c] * 8.0 / 7.0 : first_variance[c], 1e-14);
  }
}

TEST_P(BatchNormOperation, Gradients) {
  expect_gradients(context, "batch_norm", [&](Context& c) { return apply(c, x); }, {{"x", x}, {"gamma", gamma}, {"beta", beta}});
}

TEST_P(BatchNormOperation, AddsToGradientsThatAreThere) {
  expect_gradients(context, "batch_norm", [&](Context& c) { return add(c, apply(c, apply(c, x)), x); },
                   {{"x", x}, {"gamma", gamma}, {"beta", beta}});
}

INSTANTIATE_TEST_SUITE_P(Kinds, BatchNormOperation,
                         testing::Values(BatchNormKind{ImageLayout::nhwc, BatchNormMode::training, BatchNormPasses::one},
                                         BatchNormKind{ImageLayout::nhwc, BatchNormMode::training, BatchNormPasses::several},
                                         BatchNormKind{ImageLayout::nchw, BatchNormMode::training, BatchNormPasses::one},
                                         BatchNormKind{ImageLayout::nhwc, BatchNormMode::evaluation, BatchNormPasses::one},
                                         BatchNormKind{ImageLayout::nchw, BatchNormMode::evaluation, BatchNormPasses::several}),
                         [](const testing::TestParamInfo<BatchNormKind>& kind) {
                           return concat(name_of(kind.param.layout),
                                         kind.param.mode == BatchNormMode::training ? "_training" : "_evaluation",
                                         kind.param.passes == BatchNormPasses::one ? "" : "_several");
                         });

class BatchNormShapes : public Fp64Test {};

TEST_F(BatchNormShapes, AreNamedWhereTheyDiffer) {
  const Variable x = leaf({8, 3}, 1), gamma = leaf({1, 3}, 2), other = leaf({1, 4}, 3);
  expect_error([&] { batch_norm(context, {.x = x, .gamma = gamma, .beta = other}); }, {"batch_norm: beta", "[1, 4]", "[1, 3]"});
  expect_error([&] { batch_norm(context, {.x = x, .gamma = other, .beta = other}); }, {"batch_norm: x has 3 columns and gamma 4"});
}

}  // namespace
}  // namespace tilewave
