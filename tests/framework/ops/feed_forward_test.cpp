// y = activation(x U^T + u) D^T + d + residual: the same as two linear operations, and its own gradients.
#include "framework/ops/feed_forward.h"

#include "framework/ops/linear.h"
#include "tests/framework/support.h"

namespace tilewave {
namespace {

using namespace testing_support;

struct Kind {
  Activation activation;
  ActivationLayout layout;
};

class FeedForwardOperation : public Fp64Test, public testing::WithParamInterface<Kind> {
 protected:
  void SetUp() override {  // off ReLU's kink
    for (const double z : affine(HostMatrix(context, x), HostMatrix(context, up), HostMatrix(context, up_bias)).elements()) {
      ASSERT_GT(std::abs(z), 1e-3);
    }
  }
  Variable apply(Context& c, const Variable& residual) {
    return feed_forward(c, {.x = x,
                            .up_weight = up,
                            .up_bias = up_bias,
                            .down_weight = down,
                            .down_bias = down_bias,
                            .residual = residual,
                            .activation = GetParam().activation,
                            .hidden_layout = GetParam().layout});
  }

  const Variable x = leaf({5, 3}, 1), up = leaf({7, 3}, 2), up_bias = leaf({1, 7}, 3), down = leaf({3, 7}, 4), down_bias = leaf({1, 3}, 5);
  const std::vector<NamedVariable> variables = {
      {"x", x}, {"up.weight", up}, {"up.bias", up_bias}, {"down.weight", down}, {"down.bias", down_bias}};
};

TEST_P(FeedForwardOperation, IsTwoLinearOperations) {
  const Variable hidden = linear(context, {.x = x, .weight = up, .bias = up_bias, .activation = GetParam().activation});
  const Variable expected = linear(context, {.x = hidden, .weight = down, .bias = down_bias, .residual = x});
  expect_near(HostMatrix(context, apply(context, x)), HostMatrix(context, expected));
}

TEST_P(FeedForwardOperation, Gradients) {
  expect_gradients(
      context, "feed_forward", [&](Context& c) { return apply(c, Variable()); }, variables);
}

TEST_P(FeedForwardOperation, GradientsWithItsInputAsResidual) {
  expect_gradients(
      context, "feed_forward", [&](Context& c) { return apply(c, x); }, variables);
}

TEST_P(FeedForwardOperation, GradientsWithTiedWeights) {
  const auto twice = [&](Context& c) {
    return feed_forward(c, {.x = apply(c, x),
                            .up_weight = up,
                            .up_bias = up_bias,
                            .down_weight = down,
                            .down_bias = down_bias,
                            .activation = Activation::gelu_tanh,
                            .hidden_layout = GetParam().layout});
  };
  expect_gradients(context, "feed_forward", twice, variables);
}

std::vector<Kind> kinds() {
  std::vector<Kind> kinds;
  for (const Activation activation : {Activation::none, Activation::relu, Activation::gelu_tanh, Activation::gelu_erf}) {
    for (const ActivationLayout layout : {ActivationLayout::token_major, ActivationLayout::feature_major}) {
      kinds.push_back({activation, layout});
    }
  }
  return kinds;
}

INSTANTIATE_TEST_SUITE_P(Kinds, FeedForwardOperation, testing::ValuesIn(kinds()), [](const testing::TestParamInfo<Kind>& kind) {
  return std::string(name_of(kind.param.activation)) +
         (kind.param.layout == ActivationLayout::token_major ? "_token_major" : "_feature_major");
});

class FeedForwardShapes : public Fp64Test {};

TEST_F(FeedForwardShapes, AreNamedWhereTheyDiffer) {
  FeedForwardInputs inputs{.x = leaf({5, 3}, 1),
                           .up_weight = leaf({7, 3}, 2),
                           .up_bias = leaf({1, 7}, 3),
                           .down_weight = leaf({3, 7}, 4),
                           .down_bias = leaf({1, 3}, 5)};
  FeedForwardInputs wide = inputs;
  wide.x = leaf({5, 4}, 1);
  expect_error([&] { feed_forward(context, wide); }, {"feed_forward", "[5, 4]", "[7, 3]"});
  FeedForwardInputs turned = inputs;
  turned.down_weight = inputs.up_weight;
  expect_error([&] { feed_forward(context, turned); }, {"feed_forward: the down weight", "[7, 3]", "[3, 7]"});
  FeedForwardInputs biased = inputs;
  biased.up_bias = inputs.down_bias;
  expect_error([&] { feed_forward(context, biased); }, {"feed_forward: the up bias", "[1, 3]", "[1, 7]"});
}

}  // namespace
}  // namespace tilewave
