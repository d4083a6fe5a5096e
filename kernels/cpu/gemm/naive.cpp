// The oracle every other row is compared with: the formula of kernels/gemm/gemm.h as it stands there, in fp64, each operand read
// through its dtype and each result rounded once; multiply-adds are fused, as on a GPU. Never optimised.
#include "kernels/gemm/reference/naive.h"

#include <cmath>

#include "kernels/core/element.h"
#include "kernels/core/queue.h"
#include "kernels/cpu/core/thread_pool.h"
#include "kernels/gemm/gemm.h"
#include "kernels/math/activation.h"

namespace tilewave {
namespace {

double element(const ConstMatrixView& view, std::int64_t row, std::int64_t col) {
  return with_element(view.dtype, [&]<class T>(T) { return converted<double>(view.row<T>(row)[col]); });
}

void set_element(const MatrixView& view, std::int64_t row, std::int64_t col, double value) {
  with_element(view.dtype, [&]<class T>(T) { view.row<T>(row)[col] = converted<T>(value); });
}

}  // namespace

void launch_naive(CpuQueue& queue, const GemmCall& call) {
  const GemmArgs& args = call.args;
  const GemmProblem& problem = call.problem;
  const auto a = [&](std::int64_t m, std::int64_t k) { return args.a_major == Major::k ? element(args.a, m, k) : element(args.a, k, m); };
  const auto b = [&](std::int64_t k, std::int64_t n) { return args.b_major == Major::k ? element(args.b, n, k) : element(args.b, k, n); };

  const auto scalar = [&](const GemmScalar& one) { return args.a.dtype == DType::f64 ? one.load<double>() : one.load<float>(); };
  const double alpha = scalar(args.alpha), beta = scalar(args.beta);
  queue.threads->parallel_for(problem.m * problem.n, [&](std::int64_t output, int) {
    const std::int64_t m = output % problem.m, n = output / problem.m;
    const std::int64_t row = args.d_major == Major::m ? n : m, col = args.d_major == Major::m ? m : n;
    double z = 0.0;
    for (std::int64_t k = 0; k < problem.k; ++k) z = std::fma(a(m, k), b(k, n), z);
    z *= alpha;
    if (args.bias) z += element(args.bias, 0, m);
    if (args.saved_input) set_element(args.saved_input, row, col, z);
    z = activate(args.activation, z);
    if (args.derivative_of) z *= activation_derivative(args.derivative, element(args.derivative_of, row, col));
    if (args.residual) z += beta * element(args.residual, row, col);
    if (args.accumulate) z += element(args.d, row, col);
    set_element(args.d, row, col, z);
  });
  if (args.bias_gradient) {
    queue.threads->parallel_for(problem.n, [&](std::int64_t n, int) {
      double sum = 0.0;
      for (std::int64_t k = 0; k < problem.k; ++k) sum += b(k, n);
      if (args.accumulate_bias_gradient) sum += element(args.bias_gradient, 0, n);
      set_element(args.bias_gradient, 0, n, sum);
    });
  }
  if (!args.output_sums) return;
  queue.threads->parallel_for(problem.m, [&](std::int64_t m, int) {
    double sum = 0.0;
    for (std::int64_t n = 0; n < problem.n; ++n) sum += args.d_major == Major::m ? element(args.d, n, m) : element(args.d, m, n);
    set_element(args.output_sums, 0, m, sum);
  });
}

}  // namespace tilewave
