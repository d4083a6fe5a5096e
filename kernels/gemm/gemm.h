// Matrix product with everything a Transformer's layers put around it:
//   z = alpha * (A x B)                        (sums over K in order)
//   z = z + bias[m]                            where bias is given
//   saved_input = z                            where asked for: the activation's input, for a GELU's derivative
//   z = activation(z)
//   z = z * derivative'(derivative_of)         where given; for relu derivative_of may be the activation's input or output
//   z = z + beta * residual                    where given: BLAS's C
//   D = z, or D = D + z with accumulate
//   bias_gradient[n] = sum over k of B[k, n]   where asked for (wgrad: the bias gradient without a second pass over dY)
//   output_sums[m] = sum over n of D[m, n]     where asked for, of D's type (dgrad: the bias gradient of the layer below)
// Views are matrices as they lie in memory (problem.h has the table); D, saved_input, derivative_of and residual lie alike.
// The caller provides plan->workspace_bytes of workspace, on a GPU from a multiple of 128 bytes on. No operand may overlap D, except
// residual, which may be D itself.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/core/trace.h"
#include "kernels/core/view.h"
#include "kernels/gemm/plan.h"
#include "kernels/gemm/problem.h"

namespace tilewave {

struct CpuQueue;
struct CudaQueue;
struct DeviceInfo;
struct GemmKernel;

// alpha or beta: `value`, times what lies at `at` in the device's memory, which is read when the kernel runs: of f64 where the operands
// are f64, else of f32.
struct GemmScalar {
  double value = 1.0;
  const void* at = nullptr;

  bool is_one() const { return value == 1.0 && at == nullptr; }
  template <class T>
  T load() const {
    return static_cast<T>(value) * (at != nullptr ? *static_cast<const T*>(at) : T(1));
  }
};

struct GemmArgs {
  static constexpr std::string_view kOperation = "gemm";
  GemmRole role = GemmRole::forward;
  ConstMatrixView a;
  Major a_major = Major::k;
  ConstMatrixView b;
  Major b_major = Major::k;
  MatrixView d;
  Major d_major = Major::m;
  MathMode math = MathMode::ieee;
  GemmScalar alpha, beta;

  ConstMatrixView bias;  // [1, M]
  Activation activation = Activation::none;
  MatrixView saved_input;  // this and the two below: D's type or the operands'
  ConstMatrixView derivative_of;
  Activation derivative = Activation::none;
  ConstMatrixView residual;
  bool accumulate = false;
  MatrixView bias_gradient;  // [1, N]
  bool accumulate_bias_gradient = false;
  MatrixView output_sums;  // [1, M]
  bool owns_gaps = false;  // what lies between the rows of D and of saved_input may be overwritten, as in copies of a row's own

  const GemmPlan* plan = nullptr;  // must have been chosen for problem_of(*this)
  void* workspace = nullptr;
};

// The problem these arguments pose. Throws Error naming both shapes where they do not fit together.
GemmProblem problem_of(const GemmArgs& args);

inline Cost cost(const GemmProblem& problem) { return {.flops = problem.flops(), .bytes = problem.bytes()}; }
inline Cost cost(const GemmArgs& args) { return cost(problem_of(args)); }

inline TraceEntry trace_entry(const GemmArgs& args) {
  const GemmProblem problem = problem_of(args);
  return {.operation = GemmArgs::kOperation,
          .layer = {},
          .cost = cost(problem),
          .time = {},
          .gemm = problem,
          .plan = args.plan != nullptr ? std::optional<GemmPlan>(*args.plan) : std::nullopt,
          .attention = {},
          .collective = {}};
}

// What a row launches: arguments that were looked at, the problem they pose, their plan.
struct GemmCall {
  const GemmArgs& args;
  GemmProblem problem;  // problem_of(args)
  const GemmPlan& plan;
  const GemmKernel& kernel;  // that the plan names
};

// After everything that a launch on the device demands was looked at: storage, the plan (it must be the row's own for this problem and
// device), workspace, overlaps. Throws Error. Both back ends begin with it.
GemmCall check(const GemmArgs& args, const DeviceInfo& device);

void run(CpuQueue& queue, const GemmArgs& args);
void run(CudaQueue& queue, const GemmArgs& args);

}  // namespace tilewave
