// What every Tensor Core row refuses, as a sentence; empty where it refuses nothing.
#pragma once

#include "kernels/core/device_profiles.h"
#include "kernels/core/error.h"
#include "kernels/gemm/facts/gpu_model.h"

namespace tilewave {

inline std::string refuse_without_tensor_cores(const GemmProblem& problem, const DeviceInfo& device) {
  const bool half = problem.operand_dtype == DType::bf16 || problem.operand_dtype == DType::f16;
  const bool tf32 = problem.operand_dtype == DType::f32 && problem.math == MathMode::tf32;
  if (device.capability < kMinCudaCapability) return "it needs Tensor Cores of compute capability 8.0 or newer.";
  if (!half && !tf32) {
    return concat("its Tensor Cores multiply bf16, f16 and, where math is tf32, f32; not ", name_of(problem.operand_dtype), " with ",
                  name_of(problem.math), " math.");
  }
  if (problem.output_dtype != DType::f32 && problem.output_dtype != problem.operand_dtype) {
    return concat("it stores f32 or the operands' type, ", name_of(problem.operand_dtype), ", not ", name_of(problem.output_dtype), ".");
  }
  if (problem.epilogue.bias_gradient && problem.d_major != Major::m) return "it sums a bias gradient where D is m-major, as a wgrad's is.";
  return refuse_huge(problem);
}

// The same of those whose blocks stay and walk over the tiles.
inline std::string refuse_persistent(const GemmProblem& problem, const DeviceInfo& device) {
  if (problem.operand_dtype != DType::bf16 && problem.operand_dtype != DType::f16) return "its operands are bf16 or f16.";
  if (problem.a_alignment < 16 || problem.b_alignment < 16) {
    return concat("rows of its operands start on 16 bytes; A's start on ", problem.a_alignment, " and B's on ", problem.b_alignment, ".");
  }
  const bool along_m = problem.d_major == Major::m, a_along_k = problem.a_major == Major::k, b_along_k = problem.b_major == Major::k;
  if (along_m ? a_along_k && !b_along_k : b_along_k && !a_along_k) {
    return "it has no kernel for a D whose rows come from an operand that lies across K and its columns from one that lies along it.";
  }
  if (problem.epilogue.bias_gradient && problem.b_major != Major::n) return "it sums a bias gradient where B is n-major.";
  return refuse_without_tensor_cores(problem, device);
}

// Multiply-adds a cycle and SM by mma.sync: on Hopper it can issue a part of the tensor cores' rate, the rest is wgmma's.
inline double mma_rate(const GemmProblem& problem, const DeviceInfo& device) {
  const MathRates rates = math_rates(device);
  const int rate = problem.operand_dtype == DType::f32    ? rates.tensor_tf32
                   : problem.operand_dtype == DType::bf16 ? rates.tensor_bf16
                                                          : rates.tensor_f16;
  const int known = rate > 0 ? rate : problem.operand_dtype == DType::f32 ? 128 : 256;  // an unlisted device's least
  return (device.capability == 90 ? 0.625 : 1.0) * known *
         (problem.operand_dtype == DType::f32 ? cost_model_of(device).mma_tf32_fraction : 1.0);
}

}  // namespace tilewave
