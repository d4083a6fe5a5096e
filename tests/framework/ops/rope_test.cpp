// Rotary positions: frequencies as the papers have them, scores that know distances alone, gradients, and memory that nobody else may read.
#include "framework/ops/rope.h"

#include <numbers>

#include "framework/ops/add.h"
#include "tests/framework/support.h"

namespace tilewave {
namespace {

using namespace testing_support;

class Rope : public Fp64Test {
 protected:
  const Variable x = leaf({5, 13}, 1), other = leaf({5, 13}, 2);
  const Tensor table = rotation_table(context, {.positions = 9, .head_size = 6, .base = 100.0, .stretch = {}});
  const Tensor ids = ids_of({0, 3, 8, 1, 0});

  // Two heads of six columns; the thirteenth column is nobody's.
  Variable apply(Context& c) { return rope(c, {.x = add(c, x, other), .table = table, .position_ids = ids, .columns = 12}); }
};

TEST_F(Rope, TurnsHeadsAndLeavesTheRest) {
  const HostMatrix in(context, add(context, x, other));
  const std::vector<std::int32_t> positions = {0, 3, 8, 1, 0};
  HostMatrix expected = in;
  for (std::int64_t r = 0; r < 5; ++r) {
    for (const std::int64_t head : {0, 6}) {
      for (std::int64_t i = 0; i < 3; ++i) {
        const double angle = positions[static_cast<std::size_t>(r)] * std::pow(100.0, -2.0 * static_cast<double>(i) / 6.0);
        const double a = in(r, head + i), b = in(r, head + i + 3);
        expected(r, head + i) = a * std::cos(angle) - b * std::sin(angle);
        expected(r, head + i + 3) = b * std::cos(angle) + a * std::sin(angle);
      }
    }
  }
  expect_near(HostMatrix(context, apply(context)), expected);
}

TEST_F(Rope, Gradients) {
  expect_gradients(context, "rope", [&](Context& c) { return apply(c); }, {{"x", x}, {"other", other}});
}

TEST_F(Rope, TakesNoMemoryThatSomebodyElseReads) {
  const RopeInputs of_leaf{.x = x, .table = table, .position_ids = ids, .columns = 12};
  expect_error([&] { rope(context, of_leaf); }, {"rope would overwrite a leaf"});
  const Variable sum = add(context, x, other);
  add(context, sum, x);
  expect_error([&] { rope(context, {.x = sum, .table = table, .position_ids = ids, .columns = 12}); },
               {"rope overwrites the result of add, but add reads it too"});
  const Variable held = add(context, x, other);
  const Tensor copy = held.value();
  expect_error([&] { rope(context, {.x = held, .table = table, .position_ids = ids, .columns = 12}); },
               {"rope overwrites the result of add, but somebody else holds that memory"});
  const Variable turned = add(context, x, other);
  rope(context, {.x = turned, .table = table, .position_ids = ids, .columns = 12});
  expect_error([&] { add(context, turned, x); }, {"the result of add was consumed by rope"});
}

// Llama 3.1's rule: waves longer than the original length / low are eight times as long, those shorter than that / high as they were, and
// between them in proportion. The figures are those of its paper's released code, for 8,192 positions and a base of 500,000.
TEST(RotationFrequencies, AreStretchedWhereWavesAreLong) {
  const RotationTable plain{.positions = 1, .head_size = 128, .base = 500000.0, .stretch = {}};
  RotationTable stretched = plain;
  stretched.stretch = {.factor = 8.0, .low = 1.0, .high = 4.0, .original_positions = 8192};
  int as_they_were = 0, between = 0, whole = 0;
  for (std::int64_t pair = 0; pair < 64; ++pair) {
    const double before = std::pow(500000.0, -static_cast<double>(pair) / 64.0), after = rotation_frequency(stretched, pair);
    EXPECT_DOUBLE_EQ(rotation_frequency(plain, pair), before);
    const double wave = 2.0 * std::numbers::pi / before;
    if (wave < 2048.0) {
      EXPECT_DOUBLE_EQ(after, before);
      ++as_they_were;
    } else if (wave > 8192.0) {
      EXPECT_DOUBLE_EQ(after, before / 8.0);
      ++whole;
    } else {
      const double share = (8192.0 / wave - 1.0) / 3.0;
      EXPECT_NEAR(after, before * ((1.0 - share) / 8.0 + share), 1e-12);
      ++between;
    }
  }
  EXPECT_GT(as_they_were, 10);
  EXPECT_GT(between, 3);
  EXPECT_GT(whole, 10);
}

}  // namespace
}  // namespace tilewave
