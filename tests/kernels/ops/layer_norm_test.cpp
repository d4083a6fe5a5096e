// Layer normalisation against its definition and its chain rule, written here in double.
#include "kernels/ops/layer_norm.h"

#include "tests/kernels/support.h"

namespace tilewave {
namespace {

using namespace testing_support;

struct Size {
  std::int64_t rows, cols;
};
// Around the vectors' 16 elements, and the 16,384 of a range.
constexpr Size kSizes[] = {{1, 2}, {3, 15}, {5, 16}, {63, 17}, {64, 128}, {65, 31}, {131, 257}, {2, 20000}, {16385, 17}};

template <class T>
struct Problem {
  explicit Problem(Size size) {
    Random random(3);
    x = Matrix<T>::uniform(size.rows, size.cols, random, -1.0, 3.0);
    gamma = Matrix<T>::uniform(1, size.cols, random, 0.5, 1.5);
    beta = Matrix<T>::uniform(1, size.cols, random);
    dy = Matrix<T>::uniform(size.rows, size.cols, random);
    earlier = Matrix<T>::uniform(size.rows, size.cols, random);
    earlier_parameters = Matrix<T>::uniform(1, size.cols, random);
  }
  Matrix<T> x{0, 0}, gamma{0, 0}, beta{0, 0}, dy{0, 0}, earlier{0, 0}, earlier_parameters{0, 0};
};

template <class T>
struct Outputs {
  explicit Outputs(const Problem<T>& p)
      : y(p.x.rows(), p.x.cols()),
        mean(p.x.rows(), 1),
        rstd(p.x.rows(), 1),
        dx(p.x.rows(), p.x.cols()),
        dgamma(1, p.x.cols()),
        dbeta(1, p.x.cols()) {}
  Matrix<T> y, mean, rstd, dx, dgamma, dbeta;
};

template <class T>
Outputs<T> compute(CpuQueue& queue, const Problem<T>& p, bool accumulate = false) {
  Outputs<T> o(p);
  run(queue,
      LayerNormArgs{
          .x = p.x.view(), .gamma = p.gamma.view(), .beta = p.beta.view(), .y = o.y.view(), .mean = o.mean.view(), .rstd = o.rstd.view()});
  if (accumulate) {
    o.dx = p.earlier;
    o.dgamma = p.earlier_parameters;
    o.dbeta = p.earlier_parameters;
  }
  Matrix<T> partial(layer_norm_partial_rows(p.x.rows()), p.x.cols());
  run(queue, LayerNormBackwardArgs{.x = p.x.view(),
                                   .gamma = p.gamma.view(),
                                   .mean = o.mean.view(),
                                   .rstd = o.rstd.view(),
                                   .dy = p.dy.view(),
                                   .dx = o.dx.view(),
                                   .accumulate = accumulate,
                                   .dgamma = o.dgamma.view(),
                                   .dbeta = o.dbeta.view(),
                                   .accumulate_parameters = accumulate,
                                   .partial = partial.view()});
  EXPECT_TRUE(partial.guards_intact());
  return o;
}

struct Reference {
  std::vector<double> y, mean, rstd, dx, dgamma, dbeta;
};

template <class T>
Reference reference(const Problem<T>& p) {
  const std::int64_t cols = p.x.cols();
  const auto d = static_cast<double>(cols);
  Reference result;
  result.dgamma.assign(static_cast<std::size_t>(cols), 0.0);
  result.dbeta = result.dgamma;
  for (std::int64_t r = 0; r < p.x.rows(); ++r) {
    double mean = 0.0, variance = 0.0, mean_g = 0.0, mean_gh = 0.0;
    for (std::int64_t c = 0; c < cols; ++c) mean += p.x(r, c) / d;
    for (std::int64_t c = 0; c < cols; ++c) variance += (p.x(r, c) - mean) * (p.x(r, c) - mean) / d;
    const double rstd = 1.0 / std::sqrt(variance + 1e-5);
    const auto h = [&](std::int64_t c) { return (p.x(r, c) - mean) * rstd; };
    const auto g = [&](std::int64_t c) { return static_cast<double>(p.dy(r, c)) * p.gamma(0, c); };
    for (std::int64_t c = 0; c < cols; ++c) {
      mean_g += g(c) / d;
      mean_gh += g(c) * h(c) / d;
    }
    for (std::int64_t c = 0; c < cols; ++c) {
      result.y.push_back(h(c) * p.gamma(0, c) + p.beta(0, c));
      result.dx.push_back(rstd * (g(c) - mean_g - h(c) * mean_gh));
      result.dgamma[static_cast<std::size_t>(c)] += p.dy(r, c) * h(c);
      result.dbeta[static_cast<std::size_t>(c)] += p.dy(r, c);
    }
    result.mean.push_back(mean);
    result.rstd.push_back(rstd);
  }
  return result;
}

std::vector<double> sum(std::vector<double> a, const std::vector<double>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

template <class T>
class LayerNorm : public ::testing::Test {};
TYPED_TEST_SUITE(LayerNorm, Floats);

TYPED_TEST(LayerNorm, IsItsDefinition) {
  CpuQueue queue = make_cpu_queue(2);
  for (const Size size : kSizes) {
    SCOPED_TRACE(concat(size.rows, " x ", size.cols));
    const Problem<TypeParam> problem(size);
    const Outputs<TypeParam> actual = compute(queue, problem);
    const Reference expected = reference(problem);
    expect_close(actual.y, expected.y, size.cols);
    expect_close(actual.mean, expected.mean, size.cols);
    expect_close(actual.rstd, expected.rstd, size.cols);
    expect_close(actual.dgamma, expected.dgamma, size.rows + size.cols);
    expect_close(actual.dbeta, expected.dbeta, size.rows);
    if (size.cols > 2) expect_close(actual.dx, expected.dx, size.cols);  // with two columns h is +-1 and dx vanishes
  }
}

TYPED_TEST(LayerNorm, AddsToGradientsThatAreThere) {
  CpuQueue queue = make_cpu_queue(2);
  const Size size{65, 31};
  const Problem<TypeParam> problem(size);
  const Outputs<TypeParam> actual = compute(queue, problem, true);
  const Reference expected = reference(problem);
  expect_close(actual.dx, sum(expected.dx, problem.earlier.values()), size.cols);
  expect_close(actual.dgamma, sum(expected.dgamma, problem.earlier_parameters.values()), size.rows + size.cols);
  expect_close(actual.dbeta, sum(expected.dbeta, problem.earlier_parameters.values()), size.rows);
}

TYPED_TEST(LayerNorm, ResultsDoNotDependOnTheNumberOfThreads) {
  const Problem<TypeParam> problem({323, 130});
  expect_same_bits_for_every_thread_count<TypeParam>([&](CpuQueue& queue) {
    Outputs<TypeParam> o = compute(queue, problem);
    return std::vector<Matrix<TypeParam>>{o.y, o.mean, o.rstd, o.dx, o.dgamma, o.dbeta};
  });
}

TEST(LayerNormGradient, AgreesWithCentralDifferences) {
  CpuQueue queue = make_cpu_queue(1);
  Problem<double> problem({3, 7});
  const Outputs<double> gradients = compute(queue, problem);
  const auto loss = [&] {
    const auto y = compute(queue, problem).y.values(), dy = problem.dy.values();
    double total = 0.0;
    for (std::size_t i = 0; i < y.size(); ++i) total += y[i] * dy[i];
    return total;
  };
  expect_central_differences(problem.x, gradients.dx, loss);
  expect_central_differences(problem.gamma, gradients.dgamma, loss);
  expect_central_differences(problem.beta, gradients.dbeta, loss);
}

TEST(LayerNormContract, NamesTheArgumentAndBothShapes) {
  CpuQueue queue = make_cpu_queue(1);
  Matrix<float> x(4, 8), gamma(1, 7), beta(1, 8), y(4, 8), mean(4, 1), rstd(4, 1);
  expect_error(
      [&] {
        run(queue, LayerNormArgs{
                       .x = x.view(), .gamma = gamma.view(), .beta = beta.view(), .y = y.view(), .mean = mean.view(), .rstd = rstd.view()});
      },
      "layer_norm: gamma is f32 [1, 7]; it must be f32 [1, 8].");
}

}  // namespace
}  // namespace tilewave
