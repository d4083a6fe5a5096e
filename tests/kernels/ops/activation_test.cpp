// ReLU and GELU against their definitions through erf and tanh in double; derivatives against central differences.
#include "kernels/ops/activation.h"

#include "tests/kernels/support.h"

namespace tilewave {
namespace {

using namespace testing_support;

struct Size {
  std::int64_t rows, cols;
};
constexpr Size kSizes[] = {{1, 1}, {3, 17}, {130, 257}};
constexpr Activation kActivations[] = {Activation::none, Activation::relu, Activation::gelu_tanh, Activation::gelu_erf};

double definition(Activation activation, double x) {
  constexpr double kPi = 3.14159265358979323846;
  switch (activation) {
    case Activation::none:
      return x;
    case Activation::relu:
      return std::max(x, 0.0);
    case Activation::gelu_tanh:
      return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / kPi) * (x + 0.044715 * x * x * x)));
    case Activation::gelu_erf:
      return 0.5 * x * (1.0 + std::erf(x / std::sqrt(2.0)));
  }
  return 0.0;
}

// A fourth-order central difference, and how far from the derivative it may be.
constexpr double kDifferenceError = 1e-10;
double difference(Activation activation, double x) {
  constexpr double kStep = 1e-3;
  const auto f = [&](double offset) { return definition(activation, x + offset * kStep); };
  return (8.0 * (f(1) - f(-1)) - (f(2) - f(-2))) / (12.0 * kStep);
}

// Magnitudes from 0.01 on: off ReLU's kink.
template <class T>
Matrix<T> inputs(Size size, Random& random) {
  auto x = Matrix<T>::uniform(size.rows, size.cols, random, 0.01, 5.0);
  for (std::int64_t r = 0; r < size.rows; ++r) {
    for (std::int64_t c = 1; c < size.cols; c += 2) x(r, c) = -x(r, c);
  }
  return x;
}

template <class T>
class ActivationOperation : public ::testing::Test {};
TYPED_TEST_SUITE(ActivationOperation, Floats);

TYPED_TEST(ActivationOperation, IsItsDefinition) {
  CpuQueue queue = make_cpu_queue(2);
  Random random(1);
  for (const Activation activation : kActivations) {
    for (const Size size : kSizes) {
      SCOPED_TRACE(concat(name_of(activation), " of ", size.rows, " x ", size.cols));
      const auto x = inputs<TypeParam>(size, random);
      std::vector<double> expected;
      for (const double value : x.values()) expected.push_back(definition(activation, value));
      Matrix<TypeParam> y(size.rows, size.cols);
      run(queue, ActivationArgs{.x = x.view(), .y = y.view(), .activation = activation});
      expect_close(y, expected, 4);
    }
  }
}

TYPED_TEST(ActivationOperation, BackwardIsTheDerivative) {
  CpuQueue queue = make_cpu_queue(2);
  Random random(2);
  for (const Activation activation : kActivations) {
    for (const Size size : kSizes) {
      SCOPED_TRACE(concat(name_of(activation), " of ", size.rows, " x ", size.cols));
      const auto x = inputs<TypeParam>(size, random), dy = Matrix<TypeParam>::uniform(size.rows, size.cols, random),
                 earlier = Matrix<TypeParam>::uniform(size.rows, size.cols, random);
      const auto xs = x.values(), dys = dy.values(), earliers = earlier.values();
      std::vector<double> expected, accumulated;
      for (std::size_t i = 0; i < xs.size(); ++i) {
        expected.push_back(dys[i] * difference(activation, xs[i]));
        accumulated.push_back(earliers[i] + expected.back());
      }
      Matrix<TypeParam> dx(size.rows, size.cols), in_place = dy, added = earlier;
      run(queue, ActivationBackwardArgs{.x = x.view(), .dy = dy.view(), .dx = dx.view(), .activation = activation});
      run(queue, ActivationBackwardArgs{.x = x.view(), .dy = in_place.view(), .dx = in_place.view(), .activation = activation});
      run(queue, ActivationBackwardArgs{.x = x.view(), .dy = dy.view(), .dx = added.view(), .activation = activation, .accumulate = true});
      const double allowed = std::max(tolerance<TypeParam>(4), kDifferenceError);
      EXPECT_GT(norm(expected), 0.0);
      EXPECT_LE(relative_error(dx.values(), expected), allowed);
      EXPECT_LE(relative_error(added.values(), accumulated), allowed);
      EXPECT_TRUE(dx.guards_intact() && added.guards_intact());
      EXPECT_TRUE(same_bits(in_place, dx));
    }
  }
}

TYPED_TEST(ActivationOperation, ReluMayBeDifferentiatedByItsOutput) {
  CpuQueue queue = make_cpu_queue(1);
  Random random(3);
  const Size size{5, 33};
  const auto x = inputs<TypeParam>(size, random), dy = Matrix<TypeParam>::uniform(5, 33, random);
  Matrix<TypeParam> y(5, 33), by_input(5, 33), by_output(5, 33);
  run(queue, ActivationArgs{.x = x.view(), .y = y.view(), .activation = Activation::relu});
  run(queue, ActivationBackwardArgs{.x = x.view(), .dy = dy.view(), .dx = by_input.view(), .activation = Activation::relu});
  run(queue, ActivationBackwardArgs{.x = y.view(), .dy = dy.view(), .dx = by_output.view(), .activation = Activation::relu});
  EXPECT_GT(norm(by_input.values()), 0.0);
  EXPECT_TRUE(same_bits(by_input, by_output));
}

TYPED_TEST(ActivationOperation, ResultsDoNotDependOnTheNumberOfThreads) {
  Random random(4);
  const auto x = inputs<TypeParam>({300, 257}, random);
  expect_same_bits_for_every_thread_count<TypeParam>([&](CpuQueue& queue) {
    std::vector<Matrix<TypeParam>> results;
    for (const Activation activation : kActivations) {
      Matrix<TypeParam> y(300, 257), dx(300, 257);
      run(queue, ActivationArgs{.x = x.view(), .y = y.view(), .activation = activation});
      run(queue, ActivationBackwardArgs{.x = x.view(), .dy = x.view(), .dx = dx.view(), .activation = activation});
      results.insert(results.end(), {y, dx});
    }
    return results;
  });
}

}  // namespace
}  // namespace tilewave
