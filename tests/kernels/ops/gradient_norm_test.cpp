// The global norm against one sum in long double; clipping; non-finite gradients; padding that changes no bit.
#include "kernels/ops/gradient_norm.h"

#include "tests/kernels/support.h"

namespace tilewave {
namespace {

using namespace testing_support;

template <class T>
std::vector<Matrix<T>> gradients() {
  Random random(21);
  std::vector<Matrix<T>> all;
  for (const auto& [rows, cols] : {std::pair{1, 1}, {300, 129}, {1, 130}, {17, 15}, {2, 40000}}) {
    all.push_back(Matrix<T>::uniform(rows, cols, random));
  }
  return all;
}

template <class T>
StepState measure(CpuQueue& queue, std::vector<Matrix<T>>& all, double clip_norm, StepState state = {.loss_scale = 4.0}) {
  std::vector<MatrixView> views;
  for (Matrix<T>& gradient : all) views.push_back(gradient.view());
  run(queue, GradientNormArgs{.gradients = views, .clip_norm = clip_norm, .state = &state});
  return state;
}

template <class T>
double reference_norm(const std::vector<Matrix<T>>& all) {
  long double sum = 0.0L;
  for (const Matrix<T>& gradient : all) {
    for (const double value : gradient.values()) sum += static_cast<long double>(value) * value;
  }
  return static_cast<double>(std::sqrt(sum)) / 4.0;
}

template <class T>
class GradientNorm : public ::testing::Test {};
TYPED_TEST_SUITE(GradientNorm, Floats);

TYPED_TEST(GradientNorm, IsTheNormWithoutTheLossScale) {
  CpuQueue queue = make_cpu_queue(2);
  auto all = gradients<TypeParam>();
  const double expected = reference_norm(all);
  ASSERT_GT(expected, 1.0);
  const StepState free = measure(queue, all, 0.0), loose = measure(queue, all, 2.0 * expected), tight = measure(queue, all, 1.0);
  EXPECT_NEAR(free.gradient_norm, expected, 1e-13 * expected);
  EXPECT_EQ(free.clip_factor, 1.0);
  EXPECT_EQ(loose.clip_factor, 1.0);
  EXPECT_NEAR(tight.clip_factor, 1.0 / expected, 1e-13 / expected);
  EXPECT_EQ(tight.found_nonfinite, 0);
}

TYPED_TEST(GradientNorm, FindsNonfiniteGradientsAndLossesAndNeverForgets) {
  CpuQueue queue = make_cpu_queue(2);
  for (const TypeParam bad : {std::numeric_limits<TypeParam>::quiet_NaN(), std::numeric_limits<TypeParam>::infinity()}) {
    auto all = gradients<TypeParam>();
    all[1](299, 128) = bad;
    EXPECT_EQ(measure(queue, all, 1.0).found_nonfinite, 1);
  }
  auto all = gradients<TypeParam>();
  EXPECT_EQ(measure(queue, all, 1.0, {.loss = std::numeric_limits<double>::quiet_NaN()}).found_nonfinite, 1);
  EXPECT_EQ(measure(queue, all, 1.0, {.found_nonfinite = 1}).found_nonfinite, 1);
}

TYPED_TEST(GradientNorm, PaddingChangesNoBit) {
  CpuQueue queue = make_cpu_queue(2);
  auto all = gradients<TypeParam>();
  const double expected = measure(queue, all, 0.0).gradient_norm;
  for (Matrix<TypeParam>& gradient : all) {
    auto padded = Matrix<TypeParam>::filled(gradient.rows() + 5, gradient.cols() + 7, TypeParam(0));
    for (std::int64_t r = 0; r < gradient.rows(); ++r) std::copy_n(&gradient(r, 0), gradient.cols(), &padded(r, 0));
    gradient = padded;
  }
  EXPECT_EQ(measure(queue, all, 0.0).gradient_norm, expected);
}

TYPED_TEST(GradientNorm, ResultsDoNotDependOnTheNumberOfThreads) {
  auto all = gradients<TypeParam>();
  expect_same_bits_for_every_thread_count<double>(
      [&](CpuQueue& queue) { return std::vector{Matrix<double>::row_of({measure(queue, all, 0.0).gradient_norm})}; });
}

// What ranks sum between the two parts; here two ranks have half of the tensors each.
TYPED_TEST(GradientNorm, OfSharesIsThatOfAll) {
  CpuQueue queue = make_cpu_queue(2);
  auto all = gradients<TypeParam>();
  const LossScaling scaling{.enabled = true, .growth_interval = 1};
  StepState whole{.loss_scale = 4.0, .loss = 1.0}, first = whole, second = whole;
  std::vector<MatrixView> views;
  for (Matrix<TypeParam>& gradient : all) views.push_back(gradient.view());
  run(queue, GradientNormArgs{.gradients = views, .clip_norm = 1.0, .scaling = scaling, .state = &whole});
  const std::span<const MatrixView> both = views;
  run(queue, SumOfSquaresArgs{.gradients = both.first(2), .state = &first, .workspace = {}});
  run(queue, SumOfSquaresArgs{.gradients = both.subspan(2), .state = &second, .workspace = {}});
  first.sum_of_squares += second.sum_of_squares;
  run(queue, NormOfSquaresArgs{.clip_norm = 1.0, .scaling = scaling, .state = &first});
  EXPECT_NEAR(first.gradient_norm, whole.gradient_norm, 1e-13 * whole.gradient_norm);
  EXPECT_NEAR(first.clip_factor, whole.clip_factor, 1e-13 * whole.clip_factor);
  EXPECT_EQ(first.loss_scale, 8.0);
  EXPECT_EQ(first.loss_scale, whole.loss_scale);
  EXPECT_EQ(first.gradient_scale, 4.0);
  EXPECT_EQ(first.found_nonfinite, 0);
  first.sum_of_squares = std::numeric_limits<double>::infinity();  // of any rank
  run(queue, NormOfSquaresArgs{.clip_norm = 1.0, .state = &first});
  EXPECT_EQ(first.found_nonfinite, 1);
}

StepState scale(CpuQueue& queue, bool finite, const LossScaling& scaling, StepState state) {
  Matrix<float> gradient = Matrix<float>::filled(1, 4, finite ? 2.0F : std::numeric_limits<float>::infinity());
  const std::vector<MatrixView> views{gradient.view()};
  run(queue, GradientNormArgs{.gradients = views, .scaling = scaling, .state = &state});
  return state;
}

TEST(LossScale, FallsWhereSomethingIsNotFiniteAndForgetsIt) {
  CpuQueue queue = make_cpu_queue(1);
  constexpr LossScaling kScaling{.enabled = true, .floor = 2.0};
  StepState state = scale(queue, false, kScaling, {.loss_scale = 8.0, .good_steps = 7});
  EXPECT_EQ(state.loss_scale, 4.0);
  EXPECT_EQ(state.gradient_scale, 8.0);
  EXPECT_EQ(state.good_steps, 0);
  EXPECT_EQ(state.found_nonfinite, 1);
  EXPECT_EQ(state.scale_exhausted, 0);
  state = scale(queue, true, kScaling, state);
  EXPECT_EQ(state.found_nonfinite, 0);
  EXPECT_EQ(state.loss_scale, 4.0);
  EXPECT_EQ(state.gradient_norm, 1.0) << "the scale of the gradients that stand is divided out";
  state.loss = std::numeric_limits<double>::quiet_NaN();
  state = scale(queue, true, kScaling, state);
  EXPECT_EQ(state.found_nonfinite, 1);
  EXPECT_EQ(state.loss_scale, 2.0);
  EXPECT_EQ(state.scale_exhausted, 0);
  state = scale(queue, false, kScaling, state);
  EXPECT_EQ(state.loss_scale, 2.0) << "the floor";
  EXPECT_EQ(state.scale_exhausted, 1);
}

TEST(LossScale, GrowsAfterItsIntervalOfFiniteSteps) {
  CpuQueue queue = make_cpu_queue(1);
  constexpr LossScaling kScaling{.enabled = true, .growth_interval = 3, .factor = 4.0};
  StepState state{.loss_scale = 8.0};
  for (int step = 0; step < 2; ++step) state = scale(queue, true, kScaling, state);
  EXPECT_EQ(state.loss_scale, 8.0);
  EXPECT_EQ(state.good_steps, 2);
  state = scale(queue, true, kScaling, state);
  EXPECT_EQ(state.loss_scale, 32.0);
  EXPECT_EQ(state.gradient_scale, 8.0) << "the update that follows divides by what its gradients carry";
  EXPECT_EQ(state.good_steps, 0);
}

TEST(LossScale, RefusesAFactorThatLowersNothing) {
  CpuQueue queue = make_cpu_queue(1);
  expect_error([&] { scale(queue, true, {.enabled = true, .factor = 1.0}, {}); }, "the factor must be above 1");
}

TEST(GradientNormLargeValues, DoNotOverflowInF32) {
  CpuQueue queue = make_cpu_queue(1);
  std::vector<Matrix<float>> all{Matrix<float>::filled(1, 4, 1e30f)};
  EXPECT_NEAR(measure(queue, all, 0.0, {}).gradient_norm, 2e30, 1e24);
}

}  // namespace
}  // namespace tilewave
