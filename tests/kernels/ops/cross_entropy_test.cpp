// Cross entropy and its gradient against log softmax, written here in double.
#include "kernels/ops/cross_entropy.h"

#include "tests/kernels/support.h"

namespace tilewave {
namespace {

using namespace testing_support;

struct Case {
  std::int64_t rows, vocabulary, padding;
  double smoothing;
};
constexpr Case kCases[] = {{1, 2, 0, 0.0}, {7, 15, 1, 0.1}, {33, 16, 16, 0.0}, {40, 17, 15, 0.25}, {300, 128, 0, 0.1}, {9, 5003, 5, 0.1}};

template <class T>
struct Problem {
  explicit Problem(const Case& c) : shape(c), labels(1, c.rows) {
    Random random(5);
    logits = Matrix<T>::uniform(c.rows, c.vocabulary + c.padding, random);
    for (std::int64_t r = 0; r < c.rows; ++r) {
      labels(0, r) = r % 5 == 3 ? -1 : static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(c.vocabulary));
      state.real_tokens += labels(0, r) >= 0 ? 1 : 0;
    }
    state.real_tokens += 2;  // of another batch of the step
    state.loss = 0.5;
    state.loss_scale = 8.0;
  }
  Case shape;
  Matrix<std::int32_t> labels;
  Matrix<T> logits{0, 0};
  StepState state;
};

template <class T>
struct Outputs {
  explicit Outputs(const Problem<T>& p) : logits(p.logits), row_loss(1, p.logits.rows()), loss(1, 1), state(p.state) {}
  Matrix<T> logits, row_loss, loss;
  StepState state;
};

template <class T>
Outputs<T> compute(CpuQueue& queue, const Problem<T>& p, LossGradient gradient = LossGradient::in_place) {
  Outputs<T> o(p);
  run(queue, CrossEntropyArgs{.logits = o.logits.view(),
                              .labels = p.labels.view(),
                              .vocabulary = p.shape.vocabulary,
                              .smoothing = p.shape.smoothing,
                              .gradient = gradient,
                              .row_loss = o.row_loss.view(),
                              .loss = o.loss.view(),
                              .state = &o.state});
  return o;
}

struct Reference {
  std::vector<double> row_loss, gradient;
  double loss = 0.0;
};

template <class T>
Reference reference(const Problem<T>& p) {
  Reference result;
  const auto vocabulary = static_cast<double>(p.shape.vocabulary), tokens = static_cast<double>(p.state.real_tokens);
  for (std::int64_t r = 0; r < p.logits.rows(); ++r) {
    const std::int32_t label = p.labels(0, r);
    double sum = 0.0, loss = 0.0;
    for (std::int64_t v = 0; v < p.shape.vocabulary; ++v) sum += std::exp(static_cast<double>(p.logits(r, v)));
    for (std::int64_t v = 0; v < p.logits.cols(); ++v) {
      if (label < 0 || v >= p.shape.vocabulary) {
        result.gradient.push_back(0.0);
        continue;
      }
      const double target = (v == label ? 1.0 - p.shape.smoothing : 0.0) + p.shape.smoothing / vocabulary;
      loss -= target * (p.logits(r, v) - std::log(sum));
      result.gradient.push_back((std::exp(static_cast<double>(p.logits(r, v))) / sum - target) * p.state.loss_scale / tokens);
    }
    result.row_loss.push_back(loss);
    result.loss += loss / tokens;
  }
  return result;
}

template <class T>
class CrossEntropy : public ::testing::Test {};
TYPED_TEST_SUITE(CrossEntropy, Floats);

TYPED_TEST(CrossEntropy, IsItsDefinition) {
  CpuQueue queue = make_cpu_queue(2);
  for (const Case& c : kCases) {
    SCOPED_TRACE(concat(c.rows, " x ", c.vocabulary, " + ", c.padding));
    const Problem<TypeParam> problem(c);
    const Outputs<TypeParam> actual = compute(queue, problem);
    const Reference expected = reference(problem);
    expect_close(actual.row_loss, expected.row_loss, c.vocabulary);
    expect_close(actual.loss, {expected.loss}, c.vocabulary + c.rows);
    expect_close(actual.logits, expected.gradient, c.vocabulary);
    EXPECT_NEAR(actual.state.loss, 0.5 + expected.loss, tolerance<TypeParam>(c.vocabulary + c.rows) * expected.loss);
    for (std::int64_t r = 0; r < c.rows; ++r) {
      for (std::int64_t v = 0; v < problem.logits.cols(); ++v) {
        if (problem.labels(0, r) < 0 || v >= c.vocabulary) {
          EXPECT_EQ(actual.logits(r, v), TypeParam(0));
        }
      }
    }
  }
}

TYPED_TEST(CrossEntropy, LeavesTheLogitsWithoutAGradient) {
  CpuQueue queue = make_cpu_queue(2);
  const Problem<TypeParam> problem({40, 17, 15, 0.25});
  const Outputs<TypeParam> actual = compute(queue, problem, LossGradient::none);
  EXPECT_TRUE(same_bits(actual.logits, problem.logits));
  EXPECT_TRUE(same_bits(actual.row_loss, compute(queue, problem).row_loss));
}

TYPED_TEST(CrossEntropy, WithoutRealTokensLossAndGradientsAreZero) {
  CpuQueue queue = make_cpu_queue(1);
  Problem<TypeParam> problem({3, 9, 0, 0.1});
  for (std::int64_t r = 0; r < 3; ++r) problem.labels(0, r) = -1;
  problem.state.real_tokens = 0;
  const Outputs<TypeParam> actual = compute(queue, problem);
  expect_zero(actual.logits);
  expect_zero(actual.row_loss);
  expect_zero(actual.loss);
  EXPECT_EQ(actual.state.loss, problem.state.loss);
}

TYPED_TEST(CrossEntropy, LargeLogitsStayFiniteAndANanIsSeen) {
  CpuQueue queue = make_cpu_queue(1);
  Problem<TypeParam> problem({2, 20, 0, 0.1});
  for (std::int64_t v = 0; v < 20; ++v) problem.logits(0, v) *= TypeParam(1e4);
  EXPECT_TRUE(std::isfinite(compute(queue, problem).state.loss));
  problem.logits(1, (problem.labels(0, 1) + 1) % 20) = std::numeric_limits<TypeParam>::quiet_NaN();
  EXPECT_TRUE(std::isnan(compute(queue, problem).state.loss));
}

TYPED_TEST(CrossEntropy, ResultsDoNotDependOnTheNumberOfThreads) {
  const Problem<TypeParam> problem({700, 128, 3, 0.1});
  expect_same_bits_for_every_thread_count<TypeParam>([&](CpuQueue& queue) {
    Outputs<TypeParam> o = compute(queue, problem);
    return std::vector<Matrix<TypeParam>>{o.logits, o.row_loss, o.loss};
  });
}

TEST(CrossEntropyGradient, AgreesWithCentralDifferences) {
  CpuQueue queue = make_cpu_queue(1);
  Problem<double> problem({6, 11, 0, 0.1});
  problem.state.loss_scale = 1.0;
  const Matrix<double> gradient = compute(queue, problem).logits;
  expect_central_differences(problem.logits, gradient, [&] { return compute(queue, problem, LossGradient::none).state.loss; });
}

TEST(CrossEntropyContract, NamesALabelOutsideTheVocabulary) {
  CpuQueue queue = make_cpu_queue(1);
  Problem<float> problem({2, 9, 1, 0.0});
  problem.labels(0, 1) = 9;
  expect_error([&] { compute(queue, problem); }, "cross_entropy: row 1 has label 9 outside a vocabulary of 9.");
}

}  // namespace
}  // namespace tilewave
