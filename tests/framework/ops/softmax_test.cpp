// Softmax by itself: torch.nn.functional.softmax over the last dimension, and its gradient.
#include "framework/ops/softmax.h"

#include "framework/ops/add.h"
#include "tests/framework/support.h"

namespace tilewave {
namespace {

using namespace testing_support;

class SoftmaxOperation : public Fp64Test {
 protected:
  const Variable x = leaf({4, 7}, 1);
};

TEST_F(SoftmaxOperation, FollowsItsFormula) {
  HostMatrix expected(context, x);
  for (std::int64_t r = 0; r < expected.rows(); ++r) {
    double sum = 0.0;
    for (std::int64_t c = 0; c < expected.cols(); ++c) sum += std::exp(expected(r, c));
    for (std::int64_t c = 0; c < expected.cols(); ++c) expected(r, c) = std::exp(expected(r, c)) / sum;
  }
  expect_near(HostMatrix(context, softmax(context, x)), expected);
}

TEST_F(SoftmaxOperation, Gradients) {
  expect_gradients(context, "softmax", [&](Context& c) { return softmax(c, x); }, {{"x", x}});
}

TEST_F(SoftmaxOperation, AddsToAGradientThatIsThere) {
  expect_gradients(context, "softmax", [&](Context& c) { return add(c, softmax(c, x), x); }, {{"x", x}});
}

}  // namespace
}  // namespace tilewave
