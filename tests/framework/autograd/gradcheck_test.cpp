// The gradient check finds what is wrong (each element, a tensor sampled in part, the sign, a forgotten term), bears ReLU's kinks,
// and says what it cannot check.
#include "framework/autograd/gradcheck.h"

#include "framework/ops/activation.h"
#include "framework/ops/add.h"
#include "framework/ops/cross_entropy.h"
#include "framework/ops/linear.h"
#include "tests/framework/support.h"

namespace tilewave {
namespace {

using namespace testing_support;

// y = x^3, with a backward pass of 3 x^2 dy times factor(element).
Variable cube(Context& context, const Variable& x, const std::function<double(std::int64_t)>& factor) {
  const Tensor in = x.value(), y = context.tensor(in.shape(), in.dtype());
  const HostMatrix values(context, in);
  write_elements(context, y, [&](std::int64_t r, std::int64_t c) { return values(r, c) * values(r, c) * values(r, c); });
  return make_variable(context, y, "cube", {x}, [values, factor](Context& ctx, const Tensor& gradient, std::span<GradientSlot> slots) {
    const HostMatrix dy(ctx, gradient);
    const Tensor dx = ctx.tensor(gradient.shape(), gradient.dtype());
    write_elements(
        ctx, dx, [&](std::int64_t r, std::int64_t c) { return 3.0 * values(r, c) * values(r, c) * dy(r, c) * factor(r * dy.cols() + c); });
    slots[0].adopt(ctx, dx);
  });
}

class Gradcheck : public Fp64Test {
 protected:
  GradcheckReport check(const Variable& x, const std::function<double(std::int64_t)>& factor, const GradcheckOptions& options = {}) {
    return gradcheck(
        context, [&](Context& c) { return cube(c, x, factor); }, {{"x", x}}, options);
  }
};

TEST_F(Gradcheck, PassesWhatIsRight) {
  const GradcheckReport report = check(leaf({4, 5}, 1), [](std::int64_t) { return 1.0; });
  ASSERT_EQ(report.entries.size(), 1U);
  EXPECT_TRUE(report.passed());
  EXPECT_EQ(report.entries[0].name, "x");
  EXPECT_EQ(report.entries[0].shape, (Shape{4, 5}));
  EXPECT_EQ(report.entries[0].probes, 20);
  EXPECT_LT(report.entries[0].error, 1e-8);
}

TEST_F(Gradcheck, ReportsTheError) {
  const GradcheckReport report = check(leaf({4, 5}, 1), [](std::int64_t) { return 1.0 + 1e-4; });
  EXPECT_FALSE(report.passed());
  EXPECT_NEAR(report.entries[0].error, 1e-4, 1e-6);
}

TEST_F(Gradcheck, SeesOneWrongElement) {
  EXPECT_FALSE(check(leaf({4, 5}, 1), [](std::int64_t element) { return element == 13 ? -1.0 : 1.0; }).passed());
}

TEST_F(Gradcheck, SamplesLargeTensorsAndProbesADirection) {
  const Variable x = leaf({9, 11}, 1);
  const GradcheckOptions options{.exhaustive = 98, .samples = 10};
  const GradcheckReport right = check(
      x, [](std::int64_t) { return 1.0; }, options);
  EXPECT_TRUE(right.passed());
  EXPECT_EQ(right.entries[0].probes, 11);
  EXPECT_FALSE(check(
                   x, [](std::int64_t) { return 2.0; }, options)
                   .passed());
  // The direction sees an element wherever it is.
  for (const std::int64_t wrong : {0, 50, 98}) {
    EXPECT_FALSE(check(
                     x, [wrong](std::int64_t element) { return element == wrong ? 2.0 : 1.0; }, options)
                     .passed())
        << wrong;
  }
}

TEST_F(Gradcheck, LeavesValuesAsTheyWere) {
  const Variable x = leaf({9, 11}, 1);
  const std::vector<double> before = read_elements(context, x.value());
  check(x, [](std::int64_t) { return 1.0; }, {.exhaustive = 0, .samples = 5});
  EXPECT_EQ(read_elements(context, x.value()), before);
}

TEST_F(Gradcheck, SeesAForgottenPath) {
  const Variable x = leaf({3, 3}, 1);
  const auto forgets = [&](Context& c) { return add(c, x, Variable(activation(c, x, Activation::gelu_erf).value())); };
  EXPECT_FALSE(gradcheck(context, forgets, {{"x", x}}).passed());
}

TEST_F(Gradcheck, BearsKinksWithinTheStep) {
  const Variable x = leaf({1, 3}, 1);
  const auto function = [&](Context& c) { return activation(c, x, Activation::relu); };
  write_elements(context, x.value(), std::vector<double>{2e-6, -3e-6, 1.0});
  EXPECT_TRUE(gradcheck(context, function, {{"x", x}}).passed());
  context.plant("activation");
  EXPECT_FALSE(gradcheck(context, function, {{"x", x}}).passed());
}

TEST_F(Gradcheck, MeasuresNoiseAgainstTheGlobalNorm) {
  // The loss does not depend on the weight: its gradient is zero by mathematics, and rounding alone is left of it.
  const Variable minus_one(tensor_of({4, 4}, {-1, 0, 0, 0, 0, -1, 0, 0, 0, 0, -1, 0, 0, 0, 0, -1}));
  const Variable y = leaf({5, 4}, 3), weight = leaf({4, 4}, 4);
  const auto function = [&](Context& c) {
    const Variable moved = linear(c, {.x = y, .weight = weight});
    return add(c, moved, linear(c, {.x = moved, .weight = minus_one}));
  };
  const GradcheckReport report = gradcheck(context, [&](Context& c) { return add(c, function(c), y); }, {{"y", y}, {"weight", weight}});
  EXPECT_TRUE(report.passed());
  EXPECT_LT(report.entries[1].norm, 1e-12);
}

TEST_F(Gradcheck, SaysWhatItCannotCheck) {
  const Variable x = leaf({2, 2}, 1), other = leaf({2, 2}, 2);
  const auto identity = [&](Context& c) { return add(c, x, x); };
  expect_error([&] { gradcheck(context, identity, {{"constant", Variable(x.value())}}); }, {"constant", "leaf"});
  const Variable single = Variable::leaf(context.persistent({2, 2}, DType::f32), context.persistent({2, 2}, DType::f32));
  expect_error([&] { gradcheck(context, identity, {{"single", single}}); }, {"single", "f64"});
  expect_error([&] { gradcheck(context, identity, {{"other", other}}); }, {"does not depend on other"});
  expect_error([&] { gradcheck(context, [](Context&) { return Variable(); }, {{"x", x}}); }, {"empty Variable"});
  write_elements(context, x.value(), std::vector<double>{1.0, 2.0, INFINITY, 3.0});
  expect_error([&] { gradcheck(context, identity, {{"x", x}}); }, {"not finite"});
  Context single_precision(make_cpu_queue(1), probe_cpu(1));
  expect_error([&] { gradcheck(single_precision, identity, {{"x", x}}); }, {"fp64", "it is in fp32"});
}

// A loss is divided by the step's real tokens, and there are none until somebody says so.
TEST_F(Gradcheck, ALossOfNoTokensIsNothingToCheck) {
  const Variable x = leaf({2, 4}, 1), weight = leaf({8, 4}, 2);
  const Tensor labels = ids_of({1, 3});
  const auto loss = [&](Context& c) {
    return cross_entropy(c, {.logits = linear(c, {.x = x, .weight = weight}), .labels = labels, .vocabulary = 8});
  };
  EXPECT_TRUE(gradcheck(context, loss, {{"x", x}, {"weight", weight}}).passed());
  context.write_step_state({});
  expect_error([&] { gradcheck(context, loss, {{"x", x}, {"weight", weight}}); }, {"every gradient is zero", "real_tokens"});
}

TEST_F(Gradcheck, PutsValuesBackWhereTheFunctionThrows) {
  const Variable x = leaf({2, 2}, 1);
  const std::vector<double> before = read_elements(context, x.value());
  int calls = 0;
  const auto throws = [&](Context& c) {
    TW_CHECK(++calls < 4, "enough");
    return add(c, x, x);
  };
  expect_error([&] { gradcheck(context, throws, {{"x", x}}); }, {"enough"});
  EXPECT_EQ(read_elements(context, x.value()), before);
  EXPECT_TRUE(gradcheck(context, [&](Context& c) { return add(c, x, x); }, {{"x", x}}).passed());
}

TEST_F(Gradcheck, NothingCheckedIsNotPassed) { EXPECT_FALSE(GradcheckReport{}.passed()); }

}  // namespace
}  // namespace tilewave
