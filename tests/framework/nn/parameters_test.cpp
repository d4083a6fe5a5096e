// Named parameters: initial values that depend on seed and name alone, padding rows of zeros, gradients nobody wrote.
#include "framework/nn/parameters.h"

#include <algorithm>
#include <set>

#include "framework/ops/linear.h"
#include "tests/framework/support.h"

namespace tilewave {
namespace {

using namespace testing_support;

class ParametersTest : public Fp64Test {
 protected:
  std::vector<double> initial(Context& where, std::uint64_t seed, const ParameterSpec& spec) {
    Parameters set(where, seed);
    set.add(spec);
    return read_elements(where, set.find(spec.name)->logical_master());
  }

  Parameters parameters{context, 1};
};

TEST_F(ParametersTest, InitialValuesDependOnSeedNameAndPlaceAlone) {
  const ParameterSpec spec{.name = "decoder.3.ffn.up.weight", .shape = {4, 6}, .initialization = {.deviation = 0.5}};
  const std::vector<double> values = initial(context, 1, spec);
  ParameterSpec padded = spec, wider = spec, other = spec;
  padded.padded_rows = 8;
  wider.shape = {4, 7};
  other.name = "decoder.3.ffn.down.weight";
  EXPECT_EQ(initial(context, 1, padded), values);
  EXPECT_NE(initial(context, 2, spec), values);
  EXPECT_NE(initial(context, 1, other), values);
  const std::vector<double> wide = initial(context, 1, wider);
  for (std::size_t r = 0; r < 4; ++r) {
    for (std::size_t c = 0; c < 6; ++c) EXPECT_EQ(wide[r * 7 + c], values[r * 6 + c]);
  }
  Context single(make_cpu_queue(1), context.device(), {.precision = Precision::fp32, .pitch = PitchPolicy::packed});
  std::vector<double> rounded;
  for (const double value : values) rounded.push_back(static_cast<double>(static_cast<float>(value)));
  EXPECT_EQ(initial(single, 1, spec), rounded);
}

// Larger than what is drawn at a time, and cut elsewhere: the same values.
TEST_F(ParametersTest, InitialValuesDoNotDependOnThePiecesTheyAreDrawnIn) {
  constexpr std::int64_t kCols = 1 << 15;
  Context single(make_cpu_queue(1), context.device(), {.precision = Precision::fp32});
  const ParameterSpec spec{.name = "w", .shape = {300, kCols}, .initialization = {.mean = 1.0, .deviation = 0.5}};
  ParameterSpec fewer = spec;
  fewer.shape.rows = 200;
  std::vector<double> values = initial(single, 1, spec);
  std::set<double> firsts;
  for (std::int64_t row = 0; row < 300; ++row) firsts.insert(values[static_cast<std::size_t>(row * kCols)]);
  EXPECT_EQ(firsts.size(), 300u);
  values.resize(200 * kCols);
  EXPECT_TRUE(initial(single, 1, fewer) == values);
}

// A tensor that is written in several pieces.
TEST_F(ParametersTest, ElementsGoOverInPiecesInOrder) {
  const Tensor tensor = context.persistent({2'500, 1'003}, DType::f32);
  ASSERT_LT(2 * rows_of_piece(tensor, 4), tensor.rows());
  const auto element = [](std::int64_t row, std::int64_t column) { return static_cast<double>(row * 1'003 + column); };
  write_elements(context, tensor, element);
  const std::vector<double> elements = read_elements(context, tensor);
  for (std::size_t i = 0; i < elements.size(); ++i) ASSERT_EQ(elements[i], static_cast<double>(i));
}

TEST_F(ParametersTest, InitialValuesAreNormal) {
  const std::vector<double> values =
      initial(context, 1, {.name = "w", .shape = {100, 100}, .initialization = {.mean = 3.0, .deviation = 2.0}});
  double mean = 0.0, variance = 0.0;
  std::size_t within = 0;
  for (const double value : values) mean += value / 1e4;
  for (const double value : values) {
    variance += (value - mean) * (value - mean) / 1e4;
    within += std::abs(value - 3.0) < 2.0 ? 1U : 0U;
  }
  EXPECT_NEAR(mean, 3.0, 4 * 2.0 / 100.0);
  EXPECT_NEAR(std::sqrt(variance), 2.0, 0.06);
  EXPECT_NEAR(static_cast<double>(within) / 1e4, 0.6827, 0.02);
  EXPECT_EQ(initial(context, 1, {.name = "b", .shape = {1, 3}, .initialization = {.mean = 1.0}}), std::vector<double>(3, 1.0));
}

TEST_F(ParametersTest, PaddingRowsAreZeroAndUncounted) {
  const Variable weight = parameters.add({.name = "w", .shape = {5, 3}, .padded_rows = 8, .initialization = {.mean = 1.0}});
  const Parameter& parameter = *parameters.find("w");
  EXPECT_EQ(weight.shape(), (Shape{8, 3}));
  EXPECT_EQ(parameter.shape(), (Shape{5, 3}));
  EXPECT_EQ(parameters.count(), 15);
  EXPECT_EQ(parameter.logical_gradient().shape(), (Shape{5, 3}));
  EXPECT_EQ(read_elements(context, parameter.logical_master()), std::vector<double>(15, 1.0));
  EXPECT_EQ(read_elements(context, parameter.master.slice_rows(5, 3)), std::vector<double>(9, 0.0));
}

TEST_F(ParametersTest, AreFoundByNameInOrder) {
  parameters.add({.name = "b", .shape = {1, 3}, .kind = ParameterKind::bias});
  parameters.add({.name = "a", .shape = {2, 3}});
  std::vector<std::string> names;
  for (const Parameter& parameter : parameters.all()) names.push_back(parameter.spec.name);
  EXPECT_EQ(names, (std::vector<std::string>{"b", "a"}));
  EXPECT_EQ(parameters.find("c"), nullptr);
  EXPECT_EQ(parameters.find("b")->decay(), WeightDecay::no);
  EXPECT_EQ(parameters.find("a")->decay(), WeightDecay::yes);
  expect_error([&] { parameters.add({.name = "a", .shape = {2, 3}}); }, {"called a"});
  expect_error([&] { parameters.add({.name = "c", .shape = {5, 3}, .padded_rows = 4}); }, {"c:", "4 padded rows", "5 rows"});
}

TEST_F(ParametersTest, GradientsNobodyWroteBecomeZero) {
  const Variable used = parameters.add({.name = "used", .shape = {2, 3}, .initialization = {.deviation = 1.0}});
  const Variable unused = parameters.add({.name = "unused", .shape = {2, 3}});
  const Variable x = leaf({4, 3}, 1);
  write_elements(context, unused.gradient(), std::vector<double>(6, 5.0));
  const Variable y = linear(context, {.x = x, .weight = used});
  backward(context, y, tensor_of({4, 2}, std::vector<double>(8, 1.0)));
  const std::vector<double> gradient = read_elements(context, used.gradient());
  parameters.zero_unwritten_gradients();
  EXPECT_EQ(read_elements(context, unused.gradient()), std::vector<double>(6, 0.0));
  EXPECT_EQ(read_elements(context, used.gradient()), gradient);
  EXPECT_GT(norm(HostMatrix(context, used.gradient())), 0.0);
  parameters.reset_gradients();
  EXPECT_FALSE(used.gradient_written());
}

TEST_F(ParametersTest, HaveTheirPrecisionsTypes) {
  Context mixed(make_cpu_queue(1), context.device(), {.precision = Precision::bf16});
  Parameters set(mixed, 1);
  const Variable weight = set.add({.name = "w", .shape = {2, 3}, .initialization = {.deviation = 1.0}});
  const Parameter& parameter = *set.find("w");
  EXPECT_EQ(weight.value().dtype(), DType::bf16);
  EXPECT_EQ(weight.gradient().dtype(), DType::f32);
  EXPECT_EQ(parameter.master.dtype(), DType::f32);
  const std::vector<double> master = read_elements(mixed, parameter.master), compute = read_elements(mixed, weight.value());
  for (std::size_t i = 0; i < master.size(); ++i) EXPECT_NEAR(compute[i], master[i], std::abs(master[i]) / 256.0);
}

}  // namespace
}  // namespace tilewave
