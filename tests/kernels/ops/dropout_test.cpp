// Dropout against the draws of each element, one by one; the share of dropped elements; independence of the pitch.
#include "kernels/ops/dropout.h"

#include "kernels/math/random.h"
#include "tests/kernels/support.h"

namespace tilewave {
namespace {

using namespace testing_support;

struct Size {
  std::int64_t rows, cols;
};
// Around a quad's 4 and the 64 columns whose draws are made at once.
constexpr Size kSizes[] = {{1, 1}, {3, 5}, {7, 63}, {4, 64}, {9, 65}, {300, 130}};
constexpr StepState kState{.step = 12, .seed = 0x123456789abcdef0, .place = {.first_site = 31, .first_target_row = 12}};
constexpr std::uint32_t kSite = 9;

template <class T>
double expected_element(const Matrix<T>& x, std::int64_t r, std::int64_t c, double probability) {
  const auto draws = dropout_draws(kState.seed, kState.step, kState.place.first_site + kSite, 0, r + kState.place.first_target_row, c / 4);
  const bool kept = draws[static_cast<std::size_t>(c % 4)] >= probability * 4294967296.0;
  return kept ? x(r, c) / (1.0 - probability) : 0.0;
}

template <class T>
void drop(CpuQueue& queue, const Matrix<T>& x, ConstMatrixView residual, Matrix<T>& y, double probability) {
  run(queue, DropoutArgs{.x = x.view(), .residual = residual, .y = y.view(), .probability = probability, .site = kSite, .state = &kState});
}

template <class T>
class Dropout : public ::testing::Test {};
TYPED_TEST_SUITE(Dropout, Floats);

TYPED_TEST(Dropout, KeepsWhatTheDrawsKeep) {
  CpuQueue queue = make_cpu_queue(2);
  Random random(2);
  for (const Size size : kSizes) {
    for (const double probability : {0.0, 0.1, 0.5}) {
      SCOPED_TRACE(concat(size.rows, " x ", size.cols, ", dropping ", probability));
      const auto x = Matrix<TypeParam>::uniform(size.rows, size.cols, random, 0.5, 1.5);
      const auto residual = Matrix<TypeParam>::uniform(size.rows, size.cols, random);
      std::vector<double> plain, with_residual;
      for (std::int64_t r = 0; r < size.rows; ++r) {
        for (std::int64_t c = 0; c < size.cols; ++c) {
          plain.push_back(expected_element(x, r, c, probability));
          with_residual.push_back(residual(r, c) + plain.back());
        }
      }
      Matrix<TypeParam> y(size.rows, size.cols), z(size.rows, size.cols);
      drop(queue, x, {}, y, probability);
      drop(queue, x, residual.view(), z, probability);
      expect_close(y, plain, 1);
      expect_close(z, with_residual, 2);
      const auto is_zero = [](double value) { return value == 0.0; };
      std::vector<bool> dropped, expected_dropped;
      std::ranges::transform(y.values(), std::back_inserter(dropped), is_zero);
      std::ranges::transform(plain, std::back_inserter(expected_dropped), is_zero);
      EXPECT_EQ(dropped, expected_dropped);
    }
  }
}

TYPED_TEST(Dropout, DropsItsShare) {
  CpuQueue queue = make_cpu_queue(2);
  const auto x = Matrix<TypeParam>::filled(400, 250, TypeParam(1));
  for (const double probability : {0.1, 0.5, 0.9}) {
    Matrix<TypeParam> y(400, 250);
    drop(queue, x, {}, y, probability);
    const auto values = y.values();
    const double dropped = static_cast<double>(std::count(values.begin(), values.end(), 0.0)) / static_cast<double>(values.size());
    EXPECT_NEAR(dropped, probability, 5.0 * std::sqrt(probability * (1.0 - probability) / static_cast<double>(values.size())));
  }
}

TYPED_TEST(Dropout, DrawsDoNotDependOnThePitchAndMayBeInPlace) {
  CpuQueue queue = make_cpu_queue(1);
  Random random(4);
  const auto x = Matrix<TypeParam>::uniform(11, 70, random);
  Matrix<TypeParam> narrow(11, 70, 0), wide(11, 70, 58), in_place = x, onto_residual = x, expected(11, 70);
  drop(queue, x, {}, narrow, 0.3);
  drop(queue, x, {}, wide, 0.3);
  drop(queue, in_place, {}, in_place, 0.3);
  EXPECT_EQ(narrow.values(), wide.values());
  EXPECT_EQ(narrow.values(), in_place.values());
  EXPECT_TRUE(wide.guards_intact());
  drop(queue, x, x.view(), expected, 0.3);
  drop(queue, x, onto_residual.view(), onto_residual, 0.3);
  EXPECT_TRUE(same_bits(onto_residual, expected));
}

TYPED_TEST(Dropout, ResultsDoNotDependOnTheNumberOfThreads) {
  Random random(6);
  const auto x = Matrix<TypeParam>::uniform(700, 130, random);
  expect_same_bits_for_every_thread_count<TypeParam>([&](CpuQueue& queue) {
    Matrix<TypeParam> y(700, 130);
    drop(queue, x, {}, y, 0.2);
    return std::vector<Matrix<TypeParam>>{y};
  });
}

TEST(DropoutContract, RefusesToDropEverythingAndToDrawWithoutAState) {
  CpuQueue queue = make_cpu_queue(1);
  Matrix<float> x(2, 2), y(2, 2);
  expect_error([&] { drop(queue, x, {}, y, 1.0); }, "dropout: a probability of 1 is not in [0, 1).");
  expect_error([&] { run(queue, DropoutArgs{.x = x.view(), .y = y.view(), .probability = 0.5}); }, "needs the step's state");
}

}  // namespace
}  // namespace tilewave
