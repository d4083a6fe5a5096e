// ReLU and both GELUs by themselves: torch.nn.functional's formulas and their gradients.
#include "framework/ops/activation.h"

#include <numbers>

#include "framework/ops/add.h"
#include "tests/framework/support.h"

namespace tilewave {
namespace {

using namespace testing_support;

double formula(Activation kind, double x) {
  switch (kind) {
    case Activation::none:
      return x;
    case Activation::relu:
      return std::max(x, 0.0);
    case Activation::gelu_tanh:
      return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
    case Activation::gelu_erf:
      return 0.5 * x * (1.0 + std::erf(x / std::numbers::sqrt2));
  }
  return x;
}

class ActivationOperation : public Fp64Test, public testing::WithParamInterface<Activation> {
 protected:
  // Nothing lies on ReLU's kink, and both of its sides are there.
  void SetUp() override {
    int positive = 0;
    for (const double element : HostMatrix(context, x).elements()) {
      ASSERT_GT(std::abs(element), 1e-3);
      positive += element > 0.0 ? 1 : 0;
    }
    ASSERT_GT(positive, 0);
    ASSERT_LT(positive, x.shape().elements());
  }

  const Variable x = leaf({4, 7}, 1);
};

TEST_P(ActivationOperation, FollowsItsFormula) {
  HostMatrix expected(context, x);
  for (std::int64_t r = 0; r < expected.rows(); ++r) {
    for (std::int64_t c = 0; c < expected.cols(); ++c) expected(r, c) = formula(GetParam(), expected(r, c));
  }
  expect_near(HostMatrix(context, activation(context, x, GetParam())), expected);
}

TEST_P(ActivationOperation, Gradients) {
  expect_gradients(context, "activation", [&](Context& c) { return activation(c, x, GetParam()); }, {{"x", x}});
}

TEST_P(ActivationOperation, AddsToAGradientThatIsThere) {
  expect_gradients(context, "activation", [&](Context& c) { return add(c, activation(c, x, GetParam()), x); }, {{"x", x}});
}

INSTANTIATE_TEST_SUITE_P(Kinds, ActivationOperation,
                         testing::Values(Activation::none, Activation::relu, Activation::gelu_tanh, Activation::gelu_erf),
                         [](const testing::TestParamInfo<Activation>& kind) { return std::string(name_of(kind.param)); });

}  // namespace
}  // namespace tilewave
