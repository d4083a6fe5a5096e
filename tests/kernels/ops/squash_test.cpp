// Sigmoid and tanh against the functions of the C++ library to the last bits, near zero and far out too, and their gradients from results.
#include "kernels/ops/squash.h"

#include "tests/kernels/support.h"

namespace tilewave {
namespace {

using namespace testing_support;

constexpr Squash kSquashes[] = {Squash::sigmoid, Squash::tanh};

double squash_of(Squash kind, double x) { return kind == Squash::sigmoid ? 1.0 / (1.0 + std::exp(-x)) : std::tanh(x); }
double slope_at(Squash kind, double x) {
  if (kind == Squash::sigmoid) return squash_of(kind, x) * squash_of(kind, -x);
  return 1.0 / (std::cosh(x) * std::cosh(x));
}

template <class T>
class SquashKernel : public ::testing::Test {};
TYPED_TEST_SUITE(SquashKernel, Floats);

TYPED_TEST(SquashKernel, FollowsItsFormulasAndAddsWhereAsked) {
  using T = TypeParam;
  Random random(1);
  for (const Squash kind : kSquashes) {
    for (const auto& [rows, cols] : {std::pair{1, 1}, {3, 17}, {200, 131}}) {
      SCOPED_TRACE(concat(name_of(kind), " of ", rows, " x ", cols));
      const auto x = Matrix<T>::uniform(rows, cols, random, -6.0, 6.0), dy = Matrix<T>::uniform(rows, cols, random),
                 earlier = Matrix<T>::uniform(rows, cols, random);
      for (const int threads : {1, 3}) {
        CpuQueue queue = make_cpu_queue(threads);
        Matrix<T> y(rows, cols), dx(rows, cols), added = earlier, in_place = x, gradient_in_place = dy;
        run(queue, SquashArgs{.x = x.view(), .y = y.view(), .kind = kind});
        run(queue, SquashArgs{.x = in_place.view(), .y = in_place.view(), .kind = kind});
        run(queue, SquashBackwardArgs{.y = y.view(), .dy = dy.view(), .dx = dx.view(), .kind = kind});
        run(queue, SquashBackwardArgs{.y = y.view(), .dy = dy.view(), .dx = added.view(), .kind = kind, .accumulate = true});
        run(queue, SquashBackwardArgs{.y = y.view(), .dy = gradient_in_place.view(), .dx = gradient_in_place.view(), .kind = kind});
        const double bound = 4.0 * epsilon<T>();
        for (std::int64_t r = 0; r < rows; ++r) {
          for (std::int64_t c = 0; c < cols; ++c) {
            const double at = x(r, c), value = squash_of(kind, at), gradient = slope_at(kind, at) * dy(r, c);
            EXPECT_NEAR(y(r, c), value, bound * std::abs(value)) << at;
            EXPECT_NEAR(dx(r, c), gradient, bound) << at;
            EXPECT_NEAR(added(r, c), earlier(r, c) + gradient, bound) << at;
          }
        }
        EXPECT_TRUE(same_bits(in_place, y));
        EXPECT_TRUE(same_bits(gradient_in_place, dx));
        EXPECT_TRUE(y.guards_intact() && dx.guards_intact() && added.guards_intact());
      }
    }
  }
}

// Relative to the value: tanh(x) is x where x is small, and both ways of computing it meet at 0.625.
TYPED_TEST(SquashKernel, TanhKeepsItsDigitsWhereItIsSmall) {
  using T = TypeParam;
  CpuQueue queue = make_cpu_queue(1);
  std::vector<T> inputs;
  for (double x = 1e-30; x < 0.7; x *= 1.37) inputs.insert(inputs.end(), {static_cast<T>(x), static_cast<T>(-x)});
  for (const double x : {0.6249, 0.625, 0.62500006, 0.6251}) inputs.insert(inputs.end(), {static_cast<T>(x), static_cast<T>(-x)});
  const auto x = Matrix<T>::row_of(inputs);
  Matrix<T> y(1, x.cols());
  run(queue, SquashArgs{.x = x.view(), .y = y.view(), .kind = Squash::tanh});
  for (std::int64_t c = 0; c < x.cols(); ++c) {
    const double value = std::tanh(static_cast<double>(x(0, c)));
    EXPECT_NEAR(y(0, c), value, 4.0 * epsilon<T>() * std::abs(value)) << x(0, c);
  }
}

TYPED_TEST(SquashKernel, FarOutItIsItsLimitAndANanIsSeen) {
  using T = TypeParam;
  CpuQueue queue = make_cpu_queue(1);
  const T infinite = std::numeric_limits<T>::infinity();
  const auto x = Matrix<T>::row_of({T(-1e4), T(1e4), -infinite, infinite, std::numeric_limits<T>::quiet_NaN(), T(0)});
  for (const Squash kind : kSquashes) {
    Matrix<T> y(1, 6), slope = Matrix<T>::filled(1, 6, T(1));
    run(queue, SquashArgs{.x = x.view(), .y = y.view(), .kind = kind});
    run(queue, SquashBackwardArgs{.y = y.view(), .dy = slope.view(), .dx = slope.view(), .kind = kind});
    for (const std::int64_t c : {0, 2}) EXPECT_NEAR(y(0, c), kind == Squash::sigmoid ? 0.0 : -1.0, 1e-30);
    for (const std::int64_t c : {1, 3}) EXPECT_EQ(y(0, c), T(1));
    for (const std::int64_t c : {0, 1, 2, 3}) EXPECT_NEAR(slope(0, c), 0.0, 1e-30);
    EXPECT_TRUE(std::isnan(y(0, 4)) && std::isnan(slope(0, 4)));
    EXPECT_EQ(y(0, 5), kind == Squash::sigmoid ? T(0.5) : T(0));
    EXPECT_EQ(slope(0, 5), kind == Squash::sigmoid ? T(0.25) : T(1));
  }
}

TEST(SquashContract, NamesWhatDoesNotFit) {
  CpuQueue queue = make_cpu_queue(1);
  Matrix<float> x(2, 3), other(3, 2);
  expect_error([&] { run(queue, SquashArgs{.x = x.view(), .y = other.view()}); }, "squash: y is f32 [3, 2]; it must be f32 [2, 3].");
  expect_error([&] { run(queue, SquashBackwardArgs{.y = x.view(), .dy = other.view(), .dx = x.view()}); },
               "squash_backward: dy is f32 [3, 2]; it must be f32 [2, 3].");
  expect_error([&] { run(queue, SquashBackwardArgs{.y = x.view(), .dy = x.view(), .dx = other.view()}); },
               "squash_backward: dx is f32 [3, 2]; it must be f32 [2, 3].");
}

}  // namespace
}  // namespace tilewave
