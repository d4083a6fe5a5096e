// Sigmoid and tanh: torch's formulas, and their gradients, also where they are added to one that is there.
#include "framework/ops/squash.h"

#include "framework/ops/add.h"
#include "tests/framework/support.h"

namespace tilewave {
namespace {

using namespace testing_support;

class SquashOperation : public Fp64Test, public testing::WithParamInterface<Squash> {
 protected:
  const Variable x = leaf({4, 7}, 1);
};

TEST_P(SquashOperation, FollowsItsFormula) {
  HostMatrix expected(context, x);
  for (std::int64_t r = 0; r < expected.rows(); ++r) {
    for (std::int64_t c = 0; c < expected.cols(); ++c) {
      const double at = expected(r, c);
      expected(r, c) = GetParam() == Squash::sigmoid ? 1.0 / (1.0 + std::exp(-at)) : std::tanh(at);
    }
  }
  expect_near(HostMatrix(context, squash(context, x, GetParam())), expected);
}

TEST_P(SquashOperation, Gradients) {
  expect_gradients(context, std::string(name_of(GetParam())), [&](Context& c) { return squash(c, x, GetParam()); }, {{"x", x}});
}

TEST_P(SquashOperation, AddsToAGradientThatIsThere) {
  expect_gradients(context, std::string(name_of(GetParam())), [&](Context& c) { return add(c, squash(c, x, GetParam()), x); }, {{"x", x}});
}

INSTANTIATE_TEST_SUITE_P(Kinds, SquashOperation, testing::Values(Squash::sigmoid, Squash::tanh),
                         [](const testing::TestParamInfo<Squash>& kind) { return std::string(name_of(kind.param)); });

}  // namespace
}  // namespace tilewave
