// The GPU's oracle: the formula of kernels/gemm/gemm.h as it stands there, a thread an output, in fp64, each operand read through
// its dtype and each result rounded once, bit for bit the CPU's. Compiled without contractions; the sums alone fuse. Never
// optimised.
#include "kernels/cuda/core/stream.h"
#include "kernels/cuda/prim/check.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/reference/naive.h"
#include "kernels/math/activation.h"

namespace tilewave {
namespace {

constexpr int kThreads = static_cast<int>(kCudaNaiveTiles[0].m);

template <class View>
__device__ double element(const View& view, std::int64_t row, std::int64_t col) {
  const std::int64_t at = row * view.ld + col;
  switch (view.dtype) {
    case DType::f64:
      return static_cast<const double*>(view.data)[at];
    case DType::f32:
      return static_cast<const float*>(view.data)[at];
    case DType::bf16:
      return static_cast<float>(static_cast<const bf16*>(view.data)[at]);
    default:
      return static_cast<float>(static_cast<const f16*>(view.data)[at]);
  }
}

__device__ void set_element(const MatrixView& view, std::int64_t row, std::int64_t col, double value) {
  const std::int64_t at = row * view.ld + col;
  switch (view.dtype) {
    case DType::f64:
      static_cast<double*>(view.data)[at] = value;
      return;
    case DType::f32:
      static_cast<float*>(view.data)[at] = static_cast<float>(value);
      return;
    case DType::bf16:
      static_cast<bf16*>(view.data)[at] = bf16(static_cast<float>(value));
      return;
    default:
      static_cast<f16*>(view.data)[at] = f16(static_cast<float>(value));
  }
}

// Rounded as the other kernels have it.
__device__ double factor(const GemmScalar& scalar, DType operands) {
  if (operands == DType::f64) return scalar.value * (scalar.at != nullptr ? *static_cast<const double*>(scalar.at) : 1.0);
  return static_cast<float>(scalar.value) * (scalar.at != nullptr ? *static_cast<const float*>(scalar.at) : 1.0F);
}

// The views of GemmArgs, and what follows from the majors.
struct Operands {
  ConstMatrixView a, b, bias, derivative_of, residual;
  MatrixView d, saved_input, bias_gradient, output_sums;
  bool a_along_k, b_along_k, d_along_m;
  Activation activation, derivative;
  bool accumulate, accumulate_bias_gradient;
  GemmScalar alpha, beta;
  std::int64_t m, n, k;

  __device__ double a_at(std::int64_t row, std::int64_t col) const { return a_along_k ? element(a, row, col) : element(a, col, row); }
  __device__ double b_at(std::int64_t row, std::int64_t col) const { return b_along_k ? element(b, col, row) : element(b, row, col); }
};

__global__ void outputs(const Operands o) {
  const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (index >= o.m * o.n) return;
  const std::int64_t m = index % o.m, n = index / o.m, row = o.d_along_m ? n : m, col = o.d_along_m ? m : n;
  double z = 0.0;
  for (std::int64_t k = 0; k < o.k; ++k) z = fma(o.a_at(m, k), o.b_at(k, n), z);
  z *= factor(o.alpha, o.a.dtype);
  if (o.bias.data != nullptr) z += element(o.bias, 0, m);
  if (o.saved_input.data != nullptr) set_element(o.saved_input, row, col, z);
  z = activate(o.activation, z);
  if (o.derivative_of.data != nullptr) z *= activation_derivative(o.derivative, element(o.derivative_of, row, col));
  if (o.residual.data != nullptr) z += factor(o.beta, o.a.dtype) * element(o.residual, row, col);
  if (o.accumulate) z += element(o.d, row, col);
  set_element(o.d, row, col, z);
}

__global__ void bias_gradients(const Operands o) {
  const std::int64_t n = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (n >= o.n) return;
  double sum = 0.0;
  for (std::int64_t k = 0; k < o.k; ++k) sum += o.b_at(k, n);
  if (o.accumulate_bias_gradient) sum += element(o.bias_gradient, 0, n);
  set_element(o.bias_gradient, 0, n, sum);
}

__global__ void sum_outputs(const Operands o) {
  const std::int64_t m = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (m >= o.m) return;
  double sum = 0.0;
  for (std::int64_t n = 0; n < o.n; ++n) sum += o.d_along_m ? element(o.d, n, m) : element(o.d, m, n);
  set_element(o.output_sums, 0, m, sum);
}

}  // namespace

void launch_naive(CudaQueue& queue, const GemmCall& call) {
  const GemmArgs& args = call.args;
  const GemmProblem& problem = call.problem;
  const Operands operands = {.a = args.a,
                             .b = args.b,
                             .bias = args.bias,
                             .derivative_of = args.derivative_of,
                             .residual = args.residual,
                             .d = args.d,
                             .saved_input = args.saved_input,
                             .bias_gradient = args.bias_gradient,
                             .output_sums = args.output_sums,
                             .a_along_k = args.a_major == Major::k,
                             .b_along_k = args.b_major == Major::k,
                             .d_along_m = args.d_major == Major::m,
                             .activation = args.activation,
                             .derivative = args.derivative,
                             .accumulate = args.accumulate,
                             .accumulate_bias_gradient = args.accumulate_bias_gradient,
                             .alpha = args.alpha,
                             .beta = args.beta,
                             .m = problem.m,
                             .n = problem.n,
                             .k = problem.k};
  outputs<<<static_cast<unsigned>(call.plan.blocks), kThreads, 0, stream_of(queue)>>>(operands);
  TW_CUDA_LAUNCHED("gemm naive");
  if (args.bias_gradient) {
    bias_gradients<<<static_cast<unsigned>(ceil_div(problem.n, kThreads)), kThreads, 0, stream_of(queue)>>>(operands);
    TW_CUDA_LAUNCHED("gemm naive, bias gradient");
  }
  if (args.output_sums) {
    sum_outputs<<<static_cast<unsigned>(ceil_div(problem.m, kThreads)), kThreads, 0, stream_of(queue)>>>(operands);
    TW_CUDA_LAUNCHED("gemm naive, output sums");
  }
}

}  // namespace tilewave
