// Layer normalisation: torch.nn.functional.layer_norm's formula with epsilon 1e-5, and its gradients.
#include "framework/ops/layer_norm.h"

#include "framework/ops/add.h"
#include "tests/framework/support.h"

namespace tilewave {
namespace {

using namespace testing_support;

class LayerNormOperation : public Fp64Test {
 protected:
  const Variable x = leaf({70, 5}, 1), gamma = leaf({1, 5}, 2), beta = leaf({1, 5}, 3);
};

TEST_F(LayerNormOperation, FollowsItsFormula) {
  const HostMatrix in(context, x), scale(context, gamma), shift(context, beta);
  HostMatrix expected(in.rows(), in.cols());
  for (std::int64_t r = 0; r < in.rows(); ++r) {
    double mean = 0.0, variance = 0.0;
    for (std::int64_t c = 0; c < 5; ++c) mean += in(r, c) / 5.0;
    for (std::int64_t c = 0; c < 5; ++c) variance += (in(r, c) - mean) * (in(r, c) - mean) / 5.0;
    for (std::int64_t c = 0; c < 5; ++c) expected(r, c) = (in(r, c) - mean) / std::sqrt(variance + 1e-5) * scale(0, c) + shift(0, c);
  }
  expect_near(HostMatrix(context, layer_norm(context, {.x = x, .gamma = gamma, .beta = beta})), expected);
}

TEST_F(LayerNormOperation, Gradients) {
  expect_gradients(context, "layer_norm", [&](Context& c) { return layer_norm(c, {.x = x, .gamma = gamma, .beta = beta}); },
                   {{"x", x}, {"gamma", gamma}, {"beta", beta}});
}

TEST_F(LayerNormOperation, GradientsOfTiedParameters) {
  const auto twice = [&](Context& c) {
    const Variable y = layer_norm(c, {.x = x, .gamma = gamma, .beta = beta});
    return layer_norm(c, {.x = add(c, y, x), .gamma = gamma, .beta = beta});
  };
  expect_gradients(context, "layer_norm", twice, {{"x", x}, {"gamma", gamma}, {"beta", beta}});
}

TEST_F(LayerNormOperation, GradientsWhereOneParameterIsUsedElsewhere) {
  const Variable row = leaf({1, 5}, 4);
  const auto mixed = [&](Context& c) {
    const Variable y = layer_norm(c, {.x = row, .gamma = gamma, .beta = beta});  // [1, 5]
    return add(c, y, gamma);
  };
  expect_gradients(context, "layer_norm", mixed, {{"row", row}, {"gamma", gamma}, {"beta", beta}});
}

TEST_F(LayerNormOperation, GradientOfTheInputAlone) {
  expect_gradients(context, "layer_norm",
                   [&](Context& c) { return layer_norm(c, {.x = x, .gamma = Variable(gamma.value()), .beta = Variable(beta.value())}); },
                   {{"x", x}});
}

TEST_F(LayerNormOperation, NamesBothShapes) {
  expect_error([&] { layer_norm(context, {.x = x, .gamma = leaf({1, 4}, 1), .beta = beta}); }, {"layer_norm: gamma", "[1, 4]", "[1, 5]"});
  expect_error([&] { layer_norm(context, {.x = x, .gamma = gamma, .beta = leaf({5, 1}, 1)}); }, {"layer_norm: beta", "[5, 1]", "[1, 5]"});
}

}  // namespace
}  // namespace tilewave
