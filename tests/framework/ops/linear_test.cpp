// y = activation(x W^T + b) + residual: formula and gradients with every activation, with and without its optional inputs, with
// inputs used twice, and the sentences of wrong shapes.
#include "framework/ops/linear.h"

#include "framework/ops/activation.h"
#include "framework/ops/add.h"
#include "tests/framework/support.h"

namespace tilewave {
namespace {

using namespace testing_support;

class LinearOperation : public Fp64Test {
 protected:
  const Variable x = leaf({5, 3}, 1), weight = leaf({4, 3}, 2), bias = leaf({1, 4}, 3), residual = leaf({5, 4}, 4);
  const Variable square = leaf({3, 3}, 5);
};

class LinearActivation : public LinearOperation, public testing::WithParamInterface<Activation> {
 protected:
  void SetUp() override {  // off ReLU's kink
    for (const double z : affine(HostMatrix(context, x), HostMatrix(context, weight), HostMatrix(context, bias)).elements()) {
      ASSERT_GT(std::abs(z), 1e-3);
    }
  }
};

TEST_P(LinearActivation, FollowsItsFormula) {
  const Variable z(tensor_of({5, 4}, affine(HostMatrix(context, x), HostMatrix(context, weight), HostMatrix(context, bias)).elements()));
  HostMatrix expected(context, activation(context, z, GetParam()));
  const HostMatrix added(context, residual);
  for (std::int64_t r = 0; r < 5; ++r) {
    for (std::int64_t c = 0; c < 4; ++c) expected(r, c) += added(r, c);
  }
  expect_near(
      HostMatrix(context, linear(context, {.x = x, .weight = weight, .bias = bias, .residual = residual, .activation = GetParam()})),
      expected);
}

TEST_P(LinearActivation, Gradients) {
  expect_gradients(
      context, "linear",
      [&](Context& c) { return linear(c, {.x = x, .weight = weight, .bias = bias, .residual = residual, .activation = GetParam()}); },
      {{"x", x}, {"weight", weight}, {"bias", bias}, {"residual", residual}});
}

TEST_P(LinearActivation, GradientsWithoutResidual) {
  expect_gradients(context, "linear",
                   [&](Context& c) { return linear(c, {.x = x, .weight = weight, .bias = bias, .activation = GetParam()}); },
                   {{"x", x}, {"weight", weight}, {"bias", bias}});
}

INSTANTIATE_TEST_SUITE_P(Kinds, LinearActivation,
                         testing::Values(Activation::none, Activation::relu, Activation::gelu_tanh, Activation::gelu_erf),
                         [](const testing::TestParamInfo<Activation>& kind) { return std::string(name_of(kind.param)); });

TEST_F(LinearOperation, GradientsWithoutBias) {
  expect_gradients(context, "linear", [&](Context& c) { return linear(c, {.x = x, .weight = weight}); }, {{"x", x}, {"weight", weight}});
}

TEST_F(LinearOperation, GradientsOfATiedWeight) {
  const auto twice = [&](Context& c) {
    const Variable h = linear(c, {.x = x, .weight = square, .bias = Variable(), .residual = x});
    return linear(c, {.x = h, .weight = square, .residual = h});
  };
  expect_gradients(context, "linear", twice, {{"x", x}, {"weight", square}});
}

TEST_F(LinearOperation, GradientsOfATiedBias) {
  const Variable small = leaf({1, 3}, 6);
  const auto twice = [&](Context& c) {
    const Variable h = linear(c, {.x = x, .weight = square, .bias = small, .activation = Activation::gelu_erf});
    return linear(c, {.x = h, .weight = square, .bias = small});
  };
  expect_gradients(context, "linear", twice, {{"x", x}, {"weight", square}, {"bias", small}});
}

TEST_F(LinearOperation, LeavesConstantsAlone) {
  const Variable constant(x.value());
  expect_gradients(context, "linear", [&](Context& c) { return linear(c, {.x = constant, .weight = weight}); }, {{"weight", weight}});
}

TEST_F(LinearOperation, NamesBothShapes) {
  expect_error([&] { linear(context, {.x = residual, .weight = weight}); }, {"linear", "[5, 4]", "[4, 3]"});
  expect_error([&] { linear(context, {.x = x, .weight = weight, .bias = residual}); }, {"linear: the bias", "[5, 4]", "[1, 4]"});
  expect_error([&] { linear(context, {.x = x, .weight = weight, .residual = x}); }, {"linear: the residual", "[5, 3]", "[5, 4]"});
}

}  // namespace
}  // namespace tilewave
