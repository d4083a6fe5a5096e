// Softmax against its definition in double, and its backward against central differences.
#include "kernels/ops/softmax.h"

#include "tests/kernels/support.h"

namespace tilewave {
namespace {

using namespace testing_support;

struct Size {
  std::int64_t rows, cols;
};
constexpr Size kSizes[] = {{1, 1}, {3, 15}, {5, 16}, {63, 17}, {131, 257}, {2, 20000}};

template <class T>
std::vector<double> definition(const Matrix<T>& x) {
  std::vector<double> y;
  for (std::int64_t r = 0; r < x.rows(); ++r) {
    double sum = 0.0;
    for (std::int64_t c = 0; c < x.cols(); ++c) sum += std::exp(static_cast<double>(x(r, c)));
    for (std::int64_t c = 0; c < x.cols(); ++c) y.push_back(std::exp(static_cast<double>(x(r, c))) / sum);
  }
  return y;
}

template <class T>
class Softmax : public ::testing::Test {};
TYPED_TEST_SUITE(Softmax, Floats);

TYPED_TEST(Softmax, IsItsDefinition) {
  CpuQueue queue = make_cpu_queue(2);
  Random random(1);
  for (const Size size : kSizes) {
    SCOPED_TRACE(concat(size.rows, " x ", size.cols));
    const auto x = Matrix<TypeParam>::uniform(size.rows, size.cols, random, -3.0, 3.0);
    Matrix<TypeParam> y(size.rows, size.cols), in_place = x;
    run(queue, SoftmaxArgs{.x = x.view(), .y = y.view()});
    run(queue, SoftmaxArgs{.x = in_place.view(), .y = in_place.view()});
    expect_close(y, definition(x), size.cols);
    EXPECT_TRUE(same_bits(in_place, y));
  }
}

TYPED_TEST(Softmax, LargeValuesStayFiniteAndANanIsSeen) {
  CpuQueue queue = make_cpu_queue(1);
  Matrix<TypeParam> x = Matrix<TypeParam>::row_of({TypeParam(3e4), TypeParam(-3e4), TypeParam(3e4)}), y(1, 3);
  run(queue, SoftmaxArgs{.x = x.view(), .y = y.view()});
  EXPECT_EQ(y.values(), (std::vector{0.5, 0.0, 0.5}));
  x(0, 1) = std::numeric_limits<TypeParam>::quiet_NaN();
  run(queue, SoftmaxArgs{.x = x.view(), .y = y.view()});
  EXPECT_TRUE(std::isnan(y(0, 0)));
}

TYPED_TEST(Softmax, BackwardIsItsFormula) {
  CpuQueue queue = make_cpu_queue(2);
  Random random(2);
  for (const Size size : kSizes) {
    SCOPED_TRACE(concat(size.rows, " x ", size.cols));
    const auto y = Matrix<TypeParam>::uniform(size.rows, size.cols, random, 0.0, 1.0),
               dy = Matrix<TypeParam>::uniform(size.rows, size.cols, random);
    std::vector<double> expected, accumulated;
    for (std::int64_t r = 0; r < size.rows; ++r) {
      double sum = 0.0;
      for (std::int64_t c = 0; c < size.cols; ++c) sum += static_cast<double>(dy(r, c)) * y(r, c);
      for (std::int64_t c = 0; c < size.cols; ++c) {
        expected.push_back(y(r, c) * (dy(r, c) - sum));
        accumulated.push_back(dy(r, c) + expected.back());
      }
    }
    Matrix<TypeParam> dx(size.rows, size.cols), in_place = dy, added = dy;
    run(queue, SoftmaxBackwardArgs{.y = y.view(), .dy = dy.view(), .dx = dx.view()});
    run(queue, SoftmaxBackwardArgs{.y = y.view(), .dy = in_place.view(), .dx = in_place.view()});
    run(queue, SoftmaxBackwardArgs{.y = y.view(), .dy = dy.view(), .dx = added.view(), .accumulate = true});
    expect_close(dx, expected, size.cols);
    expect_close(added, accumulated, size.cols);
    EXPECT_TRUE(same_bits(in_place, dx));
  }
}

TYPED_TEST(Softmax, ResultsDoNotDependOnTheNumberOfThreads) {
  Random random(3);
  const auto x = Matrix<TypeParam>::uniform(700, 130, random);
  expect_same_bits_for_every_thread_count<TypeParam>([&](CpuQueue& queue) {
    Matrix<TypeParam> y(700, 130), dx(700, 130);
    run(queue, SoftmaxArgs{.x = x.view(), .y = y.view()});
    run(queue, SoftmaxBackwardArgs{.y = y.view(), .dy = x.view(), .dx = dx.view()});
    return std::vector<Matrix<TypeParam>>{y, dx};
  });
}

TEST(SoftmaxGradient, AgreesWithCentralDifferences) {
  CpuQueue queue = make_cpu_queue(1);
  Random random(4);
  auto x = Matrix<double>::uniform(3, 7, random);
  const auto weights = Matrix<double>::uniform(3, 7, random);
  Matrix<double> y(3, 7), dx(3, 7);
  const auto loss = [&] {
    run(queue, SoftmaxArgs{.x = x.view(), .y = y.view()});
    const auto ys = y.values(), ws = weights.values();
    double total = 0.0;
    for (std::size_t i = 0; i < ys.size(); ++i) total += ys[i] * ws[i];
    return total;
  };
  loss();
  run(queue, SoftmaxBackwardArgs{.y = y.view(), .dy = weights.view(), .dx = dx.view()});
  expect_central_differences(x, dx, loss);
}

TEST(SoftmaxContract, NamesBothShapes) {
  CpuQueue queue = make_cpu_queue(1);
  Matrix<float> x(2, 3), y(3, 2);
  expect_error([&] { run(queue, SoftmaxArgs{.x = x.view(), .y = y.view()}); }, "softmax: y is f32 [3, 2]; it must be f32 [2, 3].");
}

}  // namespace
}  // namespace tilewave
