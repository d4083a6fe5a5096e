// SiLU and SwiGLU's product against the functions of the C++ library, far out too, and their gradients in place.
#include "kernels/ops/silu.h"

#include "tests/kernels/support.h"

namespace tilewave {
namespace {

using namespace testing_support;

double sigmoid_of(double x) { return 1.0 / (1.0 + std::exp(-x)); }
double silu_of(double x) { return x * sigmoid_of(x); }
double slope_of(double x) { return sigmoid_of(x) + x * sigmoid_of(x) * sigmoid_of(-x); }

template <class T>
class SiluKernel : public ::testing::Test {};
TYPED_TEST_SUITE(SiluKernel, Floats);

TYPED_TEST(SiluKernel, FollowsItsFormulasWithAGateAndWithout) {
  using T = TypeParam;
  Random random(1);
  for (const auto& [rows, cols] : {std::pair{1, 1}, {3, 17}, {200, 131}}) {
    const auto x = Matrix<T>::uniform(rows, cols, random, -30.0, 30.0), up = Matrix<T>::uniform(rows, cols, random),
               dy = Matrix<T>::uniform(rows, cols, random);
    for (const int threads : {1, 3}) {
      CpuQueue queue = make_cpu_queue(threads);
      Matrix<T> plain(rows, cols), gated(rows, cols), dplain = dy, dgate(rows, cols), dup(rows, cols), in_place = dy, dup_too(rows, cols);
      run(queue, SiluArgs{.x = x.view(), .up = {}, .y = plain.view()});
      run(queue, SiluArgs{.x = x.view(), .up = up.view(), .y = gated.view()});
      run(queue, SiluBackwardArgs{.x = x.view(), .up = {}, .dy = dplain.view(), .dx = dplain.view(), .dup = {}});
      run(queue, SiluBackwardArgs{.x = x.view(), .up = up.view(), .dy = dy.view(), .dx = dgate.view(), .dup = dup.view()});
      run(queue, SiluBackwardArgs{.x = x.view(), .up = up.view(), .dy = in_place.view(), .dx = in_place.view(), .dup = dup_too.view()});
      for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t c = 0; c < cols; ++c) {
          const double at = x(r, c), u = up(r, c), g = dy(r, c), bound = 8.0 * epsilon<T>();
          EXPECT_NEAR(plain(r, c), silu_of(at), bound * (1e-3 + std::abs(silu_of(at)))) << at;
          EXPECT_NEAR(gated(r, c), silu_of(at) * u, bound * (1e-3 + std::abs(silu_of(at)))) << at;
          EXPECT_NEAR(dplain(r, c), g * slope_of(at), bound * (1.0 + std::abs(at))) << at;
          EXPECT_NEAR(dgate(r, c), g * u * slope_of(at), bound * (1.0 + std::abs(at))) << at;
          EXPECT_NEAR(dup(r, c), g * silu_of(at), bound * (1e-3 + std::abs(silu_of(at)))) << at;
        }
      }
      EXPECT_TRUE(same_bits(in_place, dgate) && same_bits(dup_too, dup));
      EXPECT_TRUE(plain.guards_intact() && gated.guards_intact() && dgate.guards_intact() && dup.guards_intact());
    }
  }
}

TYPED_TEST(SiluKernel, FarOutItIsZeroOrItsInput) {
  using T = TypeParam;
  CpuQueue queue = make_cpu_queue(1);
  const auto x = Matrix<T>::row_of({T(-1e4), T(-100), T(0), T(100), T(1e4)});
  Matrix<T> y(1, 5), slope = Matrix<T>::filled(1, 5, T(1));
  run(queue, SiluArgs{.x = x.view(), .up = {}, .y = y.view()});
  run(queue, SiluBackwardArgs{.x = x.view(), .up = {}, .dy = slope.view(), .dx = slope.view(), .dup = {}});
  const std::vector<double> values = y.values(), slopes = slope.values();
  for (const std::size_t i : {0, 1, 2}) EXPECT_NEAR(values[i], 0.0, 1e-30);
  EXPECT_EQ(values[3], 100.0);
  EXPECT_EQ(values[4], 1e4);
  EXPECT_NEAR(slopes[0], 0.0, 1e-30);
  EXPECT_EQ(slopes[2], 0.5);
  EXPECT_EQ(slopes[4], 1.0);
}

TEST(SiluContract, NamesWhatDoesNotFit) {
  CpuQueue queue = make_cpu_queue(1);
  Matrix<float> x(2, 3), y(3, 2), other(2, 3);
  expect_error([&] { run(queue, SiluArgs{.x = x.view(), .up = {}, .y = y.view()}); }, "silu: y is f32 [3, 2]; it must be f32 [2, 3].");
  expect_error([&] { run(queue, SiluArgs{.x = x.view(), .up = y.view(), .y = other.view()}); },
               "silu: up is f32 [3, 2]; it must be f32 [2, 3].");
  expect_error([&] { run(queue, SiluBackwardArgs{.x = x.view(), .up = other.view(), .dy = x.view(), .dx = x.view(), .dup = {}}); },
               "silu_backward: up and dup come together; one of them is absent.");
}

}  // namespace
}  // namespace tilewave
