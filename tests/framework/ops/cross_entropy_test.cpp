// Cross entropy: value and gradient against the formula with smoothing, ignored rows and a padded vocabulary, its place as the
// root of backward(), and the sentences where its logits are wanted by somebody else.
#include "framework/ops/cross_entropy.h"

#include "framework/ops/add.h"
#include "framework/ops/linear.h"
#include "framework/ops/softmax.h"
#include "tests/framework/support.h"

namespace tilewave {
namespace {

using namespace testing_support;

constexpr std::int64_t kRows = 5, kVocabulary = 6, kPadded = 8;
constexpr double kSmoothing = 0.1;

class CrossEntropy : public Fp64Test {
 protected:
  CrossEntropy() { context.write_step_state({.step = 1, .real_tokens = 3}); }

  Variable logits(Context& c) { return linear(c, {.x = x, .weight = weight}); }  // [5, 8]
  Variable loss(Context& c, const Variable& of) {
    return cross_entropy(c, {.logits = of, .labels = labels, .vocabulary = kVocabulary, .smoothing = kSmoothing});
  }

  const Variable x = leaf({kRows, 4}, 1), weight = leaf({kPadded, 4}, 2);
  const std::vector<std::int32_t> targets = {2, -1, 0, 5, -1};
  const Tensor labels = ids_of(targets);
};

TEST_F(CrossEntropy, FollowsItsFormula) {
  const HostMatrix z(context, logits(context));
  double expected = 0.0;
  for (std::int64_t r = 0; r < kRows; ++r) {
    const std::int32_t target = targets[static_cast<std::size_t>(r)];
    if (target < 0) continue;
    double sum = 0.0;
    for (std::int64_t v = 0; v < kVocabulary; ++v) sum += std::exp(z(r, v));
    for (std::int64_t v = 0; v < kVocabulary; ++v) {
      const double wanted = kSmoothing / kVocabulary + (v == target ? 1.0 - kSmoothing : 0.0);
      expected -= wanted * std::log(std::exp(z(r, v)) / sum) / 3.0;
    }
  }
  EXPECT_NEAR(HostMatrix(context, loss(context, logits(context)))(0, 0), expected, 1e-12);
  EXPECT_NEAR(context.read_step_state().loss, expected, 1e-12);
}

TEST_F(CrossEntropy, Gradients) {
  expect_gradients(context, "cross_entropy", [&](Context& c) { return loss(c, logits(c)); }, {{"x", x}, {"weight", weight}});
}

TEST_F(CrossEntropy, IgnoredRowsAndPaddedColumnsGetNoGradient) {
  x.reset_gradient();
  weight.reset_gradient();
  backward(context, loss(context, logits(context)));
  const HostMatrix dx(context, x.gradient()), dweight(context, weight.gradient());
  for (std::int64_t c = 0; c < 4; ++c) {
    EXPECT_EQ(dx(1, c), 0.0);
    EXPECT_EQ(dx(4, c), 0.0);
    EXPECT_NE(dx(0, c), 0.0);
    EXPECT_EQ(dweight(6, c), 0.0);
    EXPECT_EQ(dweight(7, c), 0.0);
    EXPECT_NE(dweight(5, c), 0.0);
  }
}

TEST_F(CrossEntropy, GradientCarriesTheLossScale) {
  const auto gradient = [&](double loss_scale) {
    context.write_step_state({.loss_scale = loss_scale, .real_tokens = 3});
    weight.reset_gradient();
    backward(context, loss(context, logits(context)));
    return HostMatrix(context, weight.gradient());
  };
  HostMatrix expected = gradient(1.0);
  for (std::int64_t r = 0; r < kPadded; ++r) {
    for (std::int64_t c = 0; c < 4; ++c) expected(r, c) *= 1024.0;
  }
  expect_near(gradient(1024.0), expected, 0.0);
}

TEST_F(CrossEntropy, WithoutGradientsLeavesItsLogits) {
  const NoGradient scope(context);
  const Variable z = logits(context);
  const HostMatrix before(context, z);
  loss(context, z);
  EXPECT_EQ(HostMatrix(context, z).elements(), before.elements());
}

TEST_F(CrossEntropy, LogitsReadAfterwards) {
  const Variable z = logits(context);
  loss(context, z);
  expect_error([&] { add(context, z, z); }, {"linear", "cross_entropy"});
  expect_error([&] { read_elements(context, z.value()); }, {"linear", "cross_entropy"});
  expect_error([&] { loss(context, z); }, {"linear", "cross_entropy"});
}

TEST_F(CrossEntropy, LogitsReadBefore) {
  const Variable z = logits(context);
  const Variable sum = add(context, z, z);
  expect_error([&] { loss(context, z); }, {"cross_entropy", "linear", "add"});
}

// softmax keeps its result for the backward pass and would find a gradient there.
TEST_F(CrossEntropy, LogitsThatTheirOwnOperationKeeps) {
  expect_error([&] { loss(context, softmax(context, logits(context))); }, {"cross_entropy overwrites the result of softmax", "itself"});
  const Variable y = logits(context);
  const Tensor copy = y.value();
  expect_error([&] { loss(context, y); }, {"the result of linear", "a copied Tensor"});
}

TEST_F(CrossEntropy, LogitsThatAreALeaf) {
  const Variable z = leaf({kRows, kPadded}, 3);
  expect_error([&] { loss(context, z); }, {"cross_entropy", "leaf"});
}

TEST_F(CrossEntropy, IsARootAndNothingElse) {
  const Variable root = loss(context, logits(context));
  expect_error([&] { add(context, root, leaf({1, 1}, 4)); }, {"add", "cross_entropy"});
  expect_error([&] { backward(context, root, tensor_of({1, 1}, {1.0})); }, {"cross_entropy", "no seed"});
}

TEST_F(CrossEntropy, NamesBothShapes) {
  const Variable z = logits(context);
  expect_error(
      [&] {
        cross_entropy(context, {.logits = z, .labels = ids_of({1, 2}), .vocabulary = kVocabulary});
      },
      {"cross_entropy: the labels", "[1, 2]", "[1, 5]"});
  expect_error([&] { cross_entropy(context, {.logits = z, .labels = labels, .vocabulary = 9}); }, {"cross_entropy", "9", "[5, 8]"});
}

}  // namespace
}  // namespace tilewave
