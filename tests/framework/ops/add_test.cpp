// y = a + b, its gradients, and a gradient of which two inputs want the memory.
#include "framework/ops/add.h"

#include "tests/framework/support.h"

namespace tilewave {
namespace {

using namespace testing_support;

class Add : public Fp64Test {};

TEST_F(Add, FollowsItsFormula) {
  const Variable a = leaf({3, 5}, 1), b = leaf({3, 5}, 2);
  const HostMatrix x(context, a), y(context, b);
  HostMatrix expected(3, 5);
  for (std::int64_t r = 0; r < 3; ++r) {
    for (std::int64_t c = 0; c < 5; ++c) expected(r, c) = x(r, c) + y(r, c);
  }
  expect_near(HostMatrix(context, add(context, a, b)), expected, 0.0);
}

TEST_F(Add, Gradients) {
  const Variable a = leaf({3, 5}, 1), b = leaf({3, 5}, 2);
  expect_gradients(context, "add", [&](Context& c) { return add(c, a, b); }, {{"a", a}, {"b", b}});
}

TEST_F(Add, OfTwiceTheSame) {
  const Variable a = leaf({3, 5}, 1);
  expect_gradients(context, "add", [&](Context& c) { return add(c, a, a); }, {{"a", a}});
}

TEST_F(Add, OfResultsThatShareInputs) {
  const Variable a = leaf({3, 5}, 1), b = leaf({3, 5}, 2);
  const auto function = [&](Context& c) {
    const Variable sum = add(c, a, b);
    return add(c, add(c, sum, a), add(c, sum, sum));
  };
  expect_gradients(context, "add", function, {{"a", a}, {"b", b}});
}

TEST_F(Add, NamesBothShapes) {
  expect_error([&] { add(context, leaf({3, 5}, 1), leaf({5, 3}, 2)); }, {"add", "[3, 5]", "[5, 3]"});
}

}  // namespace
}  // namespace tilewave
