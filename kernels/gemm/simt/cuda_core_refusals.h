// What the CUDA-core rows refuse, and the rate they multiply at.
#pragma once

#include "kernels/core/error.h"
#include "kernels/gemm/facts/gpu_model.h"

namespace tilewave {

inline std::string refuse_without_cuda_cores(const GemmProblem& problem, const DeviceInfo& device) {
  if (device.capability < kMinCudaCapability) return "it needs a GPU of compute capability 8.0 or newer.";
  const bool fits =
      problem.output_dtype == problem.operand_dtype || (problem.output_dtype == DType::f32 && size_of(problem.operand_dtype) == 2);
  if (!fits || problem.operand_dtype == DType::i32) {
    return concat("it stores the operands' type, ", name_of(problem.operand_dtype), ", or f32 of 16-bit ones, not ",
                  name_of(problem.output_dtype), ".");
  }
  return refuse_huge(problem);
}

// Multiply-adds a cycle and SM.
inline double cuda_core_rate(const GemmProblem& problem, const DeviceInfo& device) {
  const MathRates rates = math_rates(device.capability);
  const int rate = problem.operand_dtype == DType::f64 ? rates.fp64 : rates.fp32;
  return rate > 0 ? rate : problem.operand_dtype == DType::f64 ? 2 : 64;  // an unlisted device's least
}

}  // namespace tilewave
