// The oracle every other row is compared with: the formula of kernels/gemm.h as it stands there, in fp64, each operand read
// through its dtype and each result rounded once; multiply-adds are fused, as on a GPU. Never optimised.
#include "kernels/gemm/rows/naive.h"

#include <cmath>

#include "kernels/cpu/thread_pool.h"
#include "kernels/gemm.h"
#include "kernels/math/activation.h"
#include "kernels/queue.h"

namespace tilewave {
namespace {

double element(const ConstMatrixView& view, std::int64_t row, std::int64_t col) {
  switch (view.dtype) {
    case DType::f64:
      return view.row<double>(row)[col];
    case DType::f32:
      return view.row<float>(row)[col];
    case DType::bf16:
      return static_cast<float>(view.row<bf16>(row)[col]);
    case DType::f16:
      return static_cast<float>(view.row<f16>(row)[col]);
    case DType::i32:
      break;
  }
  throw Error("gemm: naive reads f64, f32, bf16 and f16, not i32.");
}

void set_element(const MatrixView& view, std::int64_t row, std::int64_t col, double value) {
  switch (view.dtype) {
    case DType::f64:
      view.row<double>(row)[col] = value;
      return;
    case DType::f32:
      view.row<float>(row)[col] = static_cast<float>(value);
      return;
    case DType::bf16:
      view.row<bf16>(row)[col] = bf16(static_cast<float>(value));
      return;
    case DType::f16:
      view.row<f16>(row)[col] = f16(static_cast<float>(value));
      return;
    case DType::i32:
      break;
  }
  throw Error("gemm: naive writes f64, f32, bf16 and f16, not i32.");
}

}  // namespace

void launch_naive(CpuQueue& queue, const GemmArgs& args, const GemmPlan&) {
  const GemmProblem problem = problem_of(args);
  const auto a = [&](std::int64_t m, std::int64_t k) { return args.a_major == Major::k ? element(args.a, m, k) : element(args.a, k, m); };
  const auto b = [&](std::int64_t k, std::int64_t n) { return args.b_major == Major::k ? element(args.b, n, k) : element(args.b, k, n); };

  queue.threads->parallel_for(problem.n, [&](std::int64_t n, int) {
    for (std::int64_t m = 0; m < problem.m; ++m) {
      const std::int64_t row = args.d_major == Major::m ? n : m, col = args.d_major == Major::m ? m : n;
      double z = 0.0;
      for (std::int64_t k = 0; k < problem.k; ++k) z = std::fma(a(m, k), b(k, n), z);
      if (args.bias) z += element(args.bias, 0, m);
      if (args.saved_input) set_element(args.saved_input, row, col, z);
      z = activate(args.activation, z);
      if (args.derivative_of) z *= activation_derivative(args.derivative, element(args.derivative_of, row, col));
      if (args.residual) z += element(args.residual, row, col);
      if (args.accumulate) z += element(args.d, row, col);
      set_element(args.d, row, col, z);
    }
    if (args.bias_gradient) {
      double sum = 0.0;
      for (std::int64_t k = 0; k < problem.k; ++k) sum += b(k, n);
      if (args.accumulate_bias_gradient) sum += element(args.bias_gradient, 0, n);
      set_element(args.bias_gradient, 0, n, sum);
    }
  });
}

}  // namespace tilewave
