// Dropout: kept elements are x / (1 - p), the rest 0; draws depend on seed, step and place alone; the backward pass repeats them.
#include "framework/ops/dropout.h"

#include "tests/framework/support.h"

namespace tilewave {
namespace {

using namespace testing_support;

class Dropout : public Fp64Test {
 protected:
  // One step's first dropout.
  HostMatrix draw(StepState state) {
    context.write_step_state(state);
    context.begin_step();
    HostMatrix y(context, dropout(context, {.x = ones, .probability = 0.25}));
    context.end_step();
    return y;
  }

  const Variable x = leaf({6, 9}, 1), residual = leaf({6, 9}, 2);
  const Variable ones{tensor_of({40, 50}, std::vector<double>(2000, 1.0))};
};

TEST_F(Dropout, KeepsAboutItsShare) {
  int kept = 0;
  for (const double element : draw({.step = 1, .seed = 7}).elements()) {
    EXPECT_TRUE(element == 0.0 || element == 1.0 / 0.75) << element;
    kept += element != 0.0 ? 1 : 0;
  }
  EXPECT_NEAR(kept / 2000.0, 0.75, 4.0 * std::sqrt(0.25 * 0.75 / 2000.0));
}

TEST_F(Dropout, DrawsBySeedStepAndPlace) {
  const HostMatrix first = draw({.step = 1, .seed = 7});
  EXPECT_EQ(first.elements(), draw({.step = 1, .seed = 7}).elements());
  EXPECT_NE(first.elements(), draw({.step = 2, .seed = 7}).elements());
  EXPECT_NE(first.elements(), draw({.step = 1, .seed = 8}).elements());
  context.write_step_state({.step = 1, .seed = 7});
  context.begin_step();
  dropout(context, {.x = ones, .probability = 0.25});
  EXPECT_NE(first.elements(), HostMatrix(context, dropout(context, {.x = ones, .probability = 0.25})).elements());
}

TEST_F(Dropout, AddsTheResidual) {
  const auto step = [&](const Variable& added) {
    context.begin_step();
    return HostMatrix(context, dropout(context, {.x = x, .residual = added, .probability = 0.5}));
  };
  const HostMatrix dropped = step({}), added(context, residual);
  HostMatrix expected(6, 9);
  for (std::int64_t r = 0; r < 6; ++r) {
    for (std::int64_t c = 0; c < 9; ++c) expected(r, c) = dropped(r, c) + added(r, c);
  }
  expect_near(step(residual), expected);
}

TEST_F(Dropout, Gradients) {
  expect_gradients(context, "dropout", [&](Context& c) { return dropout(c, {.x = x, .residual = residual, .probability = 0.3}); },
                   {{"x", x}, {"residual", residual}});
}

TEST_F(Dropout, GradientsOfTwiceTheSameInput) {
  const auto twice = [&](Context& c) {
    const Variable y = dropout(c, {.x = x, .residual = x, .probability = 0.3});
    return dropout(c, {.x = x, .residual = y, .probability = 0.3});
  };
  expect_gradients(context, "dropout", twice, {{"x", x}});
}

TEST_F(Dropout, OfNothingIsTheInput) {
  EXPECT_EQ(dropout(context, {.x = x}).value().data(), x.value().data());
  EXPECT_EQ(operations_of(dropout(context, {.x = x, .residual = residual})), std::vector<std::string>{"add"});
}

TEST_F(Dropout, RefusesWhatItCannotDo) {
  expect_error([&] { dropout(context, {.x = x, .probability = 1.0}); }, {"dropout", "is 1;"});
  expect_error(
      [&] {
        dropout(context, {.x = x, .residual = leaf({9, 6}, 3), .probability = 0.5});
      },
      {"dropout: the residual", "[9, 6]", "[6, 9]"});
}

}  // namespace
}  // namespace tilewave
