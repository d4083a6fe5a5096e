// y = activation(x U^T + u) D^T + d + residual: the same as two linear operations, and its own gradients.
#include "framework/ops/feed_forward.h"

#include "framework/ops/linear.h"
#include "tests/framework/support.h"

namespace tilewave {
namespace {

using namespace testing_support;

struct Kind {
  FeedForwardActivation activation;
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
  const Variable hidden = linear(context, {.x = x, .weight = up, .bias = up_bias, .activation = epilogue_of(GetParam().activation)});
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
                            .activation = FeedForwardActivation::gelu_tanh,
                            .hidden_layout = GetParam().layout});
  };
  expect_gradients(context, "feed_forward", twice, variables);
}

std::vector<Kind> kinds() {
  std::vector<Kind> kinds;
  for (const FeedForwardActivation activation :
       {FeedForwardActivation::none, FeedForwardActivation::relu, FeedForwardActivation::gelu_tanh, FeedForwardActivation::gelu_erf}) {
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

// SiLU, alone and as a gate, sigmoid and tanh have a launch of their own; biases may be absent.
struct LaunchedKind {
  FeedForwardActivation activation;
  ActivationLayout layout;
  bool biases;
};

class FeedForwardWithALaunch : public Fp64Test, public testing::WithParamInterface<LaunchedKind> {
 protected:
  Variable apply(Context& c, const Variable& residual) {
    return feed_forward(c, {.x = x,
                            .up_weight = up,
                            .up_bias = GetParam().biases ? up_bias : Variable(),
                            .down_weight = down,
                            .down_bias = GetParam().biases ? down_bias : Variable(),
                            .residual = residual,
                            .activation = GetParam().activation,
                            .hidden_layout = GetParam().layout});
  }
  std::int64_t matrices() const { return up_matrices(GetParam().activation); }

  const Variable x = leaf({5, 3}, 1), up = leaf({7 * matrices(), 3}, 2), up_bias = leaf({1, 7 * matrices()}, 3), down = leaf({3, 7}, 4),
                 down_bias = leaf({1, 3}, 5);
};

double launched(FeedForwardActivation activation, double z) {
  if (activation == FeedForwardActivation::tanh) return std::tanh(z);
  return (activation == FeedForwardActivation::sigmoid ? 1.0 : z) / (1.0 + std::exp(-z));
}

TEST_P(FeedForwardWithALaunch, FollowsItsFormula) {
  const HostMatrix none(1, 7 * matrices()), none_behind(1, 3);
  const HostMatrix z = affine(HostMatrix(context, x), HostMatrix(context, up), GetParam().biases ? HostMatrix(context, up_bias) : none);
  HostMatrix h(5, 7);
  for (std::int64_t r = 0; r < 5; ++r) {
    for (std::int64_t c = 0; c < 7; ++c) h(r, c) = launched(GetParam().activation, z(r, c)) * (matrices() == 2 ? z(r, c + 7) : 1.0);
  }
  HostMatrix expected = affine(h, HostMatrix(context, down), GetParam().biases ? HostMatrix(context, down_bias) : none_behind);
  const HostMatrix in(context, x);
  for (std::int64_t r = 0; r < 5; ++r) {
    for (std::int64_t c = 0; c < 3; ++c) expected(r, c) += in(r, c);
  }
  expect_near(HostMatrix(context, apply(context, x)), expected);
  const NoGradient scope(context);
  expect_near(HostMatrix(context, apply(context, x)), expected);
}

TEST_P(FeedForwardWithALaunch, Gradients) {
  std::vector<NamedVariable> variables = {{"x", x}, {"up.weight", up}, {"down.weight", down}};
  if (GetParam().biases) variables.insert(variables.end(), {{"up.bias", up_bias}, {"down.bias", down_bias}});
  expect_gradients(
      context, "feed_forward", [&](Context& c) { return apply(c, x); }, variables);
}

std::vector<LaunchedKind> launched_kinds() {
  std::vector<LaunchedKind> kinds;
  for (const FeedForwardActivation activation :
       {FeedForwardActivation::silu, FeedForwardActivation::swiglu, FeedForwardActivation::sigmoid, FeedForwardActivation::tanh}) {
    for (const ActivationLayout layout : {ActivationLayout::token_major, ActivationLayout::feature_major}) {
      for (const bool biases : {true, false}) kinds.push_back({activation, layout, biases});
    }
  }
  return kinds;
}

INSTANTIATE_TEST_SUITE_P(Kinds, FeedForwardWithALaunch, testing::ValuesIn(launched_kinds()),
                         [](const testing::TestParamInfo<LaunchedKind>& kind) {
                           return std::string(name_of(kind.param.activation)) +
                                  (kind.param.layout == ActivationLayout::token_major ? "_token_major" : "_feature_major") +
                                  (kind.param.biases ? "" : "_no_biases");
                         });

class FeedForwardShapes : public Fp64Test {};

TEST_F(FeedForwardShapes, WithAGateHasTwiceTheRows) {
  const FeedForwardInputs inputs{
      .x = leaf({5, 3}, 1), .up_weight = leaf({7, 3}, 2), .down_weight = leaf({3, 7}, 4), .activation = FeedForwardActivation::swiglu};
  expect_error([&] { feed_forward(context, inputs); }, {"feed_forward: the up weight", "[7, 3]", "the gate's"});
}

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
