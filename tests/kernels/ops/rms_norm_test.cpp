// RMS normalisation against its formula, row by row and head by head; gradients against central differences are the framework's test.
#include "kernels/ops/rms_norm.h"

#include "tests/kernels/support.h"

namespace tilewave {
namespace {

using namespace testing_support;

// Matrices of rows x groups d; the literal formulas in double.
template <class T>
struct RmsNormProblem {
  RmsNormProblem(std::int64_t row_count, std::int64_t group_count, std::int64_t width, std::uint64_t seed = 1)
      : rows(row_count), groups(group_count), d(width) {
    Random random(seed);
    x = Matrix<T>::uniform(rows, groups * d, random, -1.0, 3.0);
    gamma = Matrix<T>::uniform(1, d, random, 0.5, 1.5);
    dy = Matrix<T>::uniform(rows, groups * d, random);
    earlier = Matrix<T>::uniform(rows, groups * d, random);
    earlier_gamma = Matrix<T>::uniform(1, d, random);
  }
  double rstd(std::int64_t r, std::int64_t g) const {
    double sum = 0.0;
    for (std::int64_t c = 0; c < d; ++c) sum += to_double(x(r, g * d + c)) * to_double(x(r, g * d + c));
    return 1.0 / std::sqrt(sum / static_cast<double>(d) + 1e-3);
  }

  std::int64_t rows, groups, d;
  Matrix<T> x{0, 0}, gamma{0, 0}, dy{0, 0}, earlier{0, 0}, earlier_gamma{0, 0};
};

template <class T>
struct RmsNormResults {
  Matrix<T> y, rstd, dx, dgamma;
};

template <class T>
RmsNormResults<T> rms_norm_of(const RmsNormProblem<T>& p, int threads, bool accumulate) {
  CpuQueue queue = make_cpu_queue(threads);
  RmsNormResults<T> result{.y = Matrix<T>(p.rows, p.groups * p.d),
                           .rstd = Matrix<T>(p.rows, p.groups),
                           .dx = accumulate ? p.earlier : Matrix<T>(p.rows, p.groups * p.d),
                           .dgamma = accumulate ? p.earlier_gamma : Matrix<T>(1, p.d)};
  Matrix<T> partial(rms_norm_partial_rows(p.rows * p.groups), p.d);
  run(queue, RmsNormArgs{.x = p.x.view(), .gamma = p.gamma.view(), .y = result.y.view(), .rstd = result.rstd.view(), .epsilon = 1e-3});
  run(queue, RmsNormBackwardArgs{.x = p.x.view(),
                                 .gamma = p.gamma.view(),
                                 .rstd = result.rstd.view(),
                                 .dy = p.dy.view(),
                                 .dx = result.dx.view(),
                                 .accumulate = accumulate,
                                 .dgamma = result.dgamma.view(),
                                 .accumulate_gamma = accumulate,
                                 .partial = partial.view()});
  EXPECT_TRUE(result.y.guards_intact() && result.rstd.guards_intact() && result.dx.guards_intact() && result.dgamma.guards_intact());
  EXPECT_TRUE(partial.guards_intact());
  return result;
}

template <class T>
class RmsNorm : public ::testing::Test {};
TYPED_TEST_SUITE(RmsNorm, Floats);

TYPED_TEST(RmsNorm, FollowsItsFormulas) {
  using T = TypeParam;
  for (const auto& [rows, groups, d] :
       {std::tuple{1, 1, 1}, {3, 1, 17}, {7, 1, 64}, {300, 1, 131}, {5, 3, 8}, {2, 4, 33}, {2200, 5, 6}, {1, 7, 1000}}) {
    for (const bool accumulate : {false, true}) {
      SCOPED_TRACE(concat(rows, " x ", groups, " x ", d, accumulate ? ", accumulated" : ""));
      const RmsNormProblem<T> p(rows, groups, d);
      const RmsNormResults<T> result = rms_norm_of(p, 2, accumulate);
      std::vector<double> y, rstds, dx, dgamma;
      for (std::int64_t c = 0; c < d; ++c) dgamma.push_back(accumulate ? to_double(p.earlier_gamma(0, c)) : 0.0);
      for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t g = 0; g < groups; ++g) {
          const double rstd = p.rstd(r, g);
          rstds.push_back(rstd);
          double mean_gh = 0.0;
          for (std::int64_t c = g * d; c < (g + 1) * d; ++c) mean_gh += p.dy(r, c) * p.gamma(0, c - g * d) * p.x(r, c) * rstd / d;
          for (std::int64_t c = g * d; c < (g + 1) * d; ++c) {
            const double h = p.x(r, c) * rstd, gamma = p.gamma(0, c - g * d);
            y.push_back(h * gamma);
            dx.push_back((accumulate ? to_double(p.earlier(r, c)) : 0.0) + rstd * (p.dy(r, c) * gamma - h * mean_gh));
            dgamma[static_cast<std::size_t>(c - g * d)] += p.dy(r, c) * h;
          }
        }
      }
      EXPECT_LE(relative_error(result.y.values(), y), tolerance<T>(d));
      EXPECT_LE(relative_error(result.rstd.values(), rstds), tolerance<T>(d));
      EXPECT_LE(relative_error(result.dgamma.values(), dgamma), tolerance<T>(rows * groups));
      if (d == 1 && !accumulate) continue;  // alone x is its own mean square, and dx vanishes but for epsilon
      EXPECT_LE(relative_error(result.dx.values(), dx), 10 * tolerance<T>(d));
    }
  }
}

TYPED_TEST(RmsNorm, BitsDoNotDependOnThreads) {
  using T = TypeParam;
  const RmsNormProblem<T> p(2200, 3, 40);
  const RmsNormResults<T> one = rms_norm_of(p, 1, true), three = rms_norm_of(p, 3, true);
  EXPECT_TRUE(same_bits(one.y, three.y) && same_bits(one.rstd, three.rstd) && same_bits(one.dx, three.dx));
  EXPECT_TRUE(same_bits(one.dgamma, three.dgamma));
}

TEST(RmsNormContract, NamesWhatDoesNotFit) {
  CpuQueue queue = make_cpu_queue(1);
  Matrix<float> x(2, 10), gamma(1, 4), y(2, 10), rstd(2, 1);
  expect_error([&] { run(queue, RmsNormArgs{.x = x.view(), .gamma = gamma.view(), .y = y.view(), .rstd = rstd.view()}); },
               "rms_norm: x has 10 columns, which are no whole number of groups of gamma's 4.");
  Matrix<float> five(1, 5);
  expect_error([&] { run(queue, RmsNormArgs{.x = x.view(), .gamma = five.view(), .y = y.view(), .rstd = rstd.view()}); },
               "rms_norm: rstd is f32 [2, 1]; it must be f32 [2, 2].");
}

}  // namespace
}  // namespace tilewave
