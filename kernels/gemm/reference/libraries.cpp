// Model: none; a library's time is measured.
#include "kernels/gemm/reference/libraries.h"

#include <algorithm>

#include "kernels/core/error.h"
#include "kernels/core/queue.h"
#include "kernels/gemm/facts/has_cuda.h"
#include "kernels/gemm/facts/split.h"

namespace tilewave {
namespace {

std::string refuse(const GemmProblem& problem, const DeviceInfo& device) {
  constexpr std::int64_t kMax = (std::int64_t{1} << 31) - 1;
  if (device.capability < kMinCudaCapability) return "it needs a GPU of compute capability 8.0 or newer.";
  const bool fits =
      problem.output_dtype == problem.operand_dtype || (problem.output_dtype == DType::f32 && size_of(problem.operand_dtype) == 2);
  if (!fits) {
    return concat("it stores the operands' type, ", name_of(problem.operand_dtype), ", or f32 of 16-bit ones, not ",
                  name_of(problem.output_dtype), ".");
  }
  if (std::max({problem.m, problem.n, problem.k, problem.a_pitch, problem.b_pitch, problem.d_pitch}) > kMax) {
    return "its sizes and pitches are 32-bit numbers.";
  }
  return {};
}

std::string refuse_cublas_gemv(const GemmProblem& problem, const DeviceInfo& device) {
  if (std::min(problem.m, problem.n) > 1) {
    return concat("it multiplies a matrix by one vector, and here M = ", problem.m, " and N = ", problem.n, ".");
  }
  return refuse(problem, device);
}

std::string refuse_cublaslt(const GemmProblem& problem, const DeviceInfo& device) {
  const Epilogue fused = {.derivative = Activation::gelu_tanh, .output_sums = true};
  const bool half = size_of(problem.operand_dtype) == 2 && problem.output_dtype == problem.operand_dtype;
  if (problem.epilogue.output_sums && (problem.epilogue != fused || problem.d_major != Major::m || !half)) {
    return "it stores sums of D over N beside a GELU's derivative by tanh and nothing else, D m-major and of 16-bit operands' type.";
  }
  return refuse(problem, device);
}

GemmPlan plan(const GemmProblem& problem, Tile tile, const DeviceInfo& device, int) {
  GemmPlan plan = plan_tiles(problem, tile, device.sm_count);
  plan.workspace_bytes = kLibraryWorkspace + library_sums_bytes(problem);
  plan.raster.kind = RasterKind::library;
  return plan;
}

struct Launches {
  CudaGemmLaunch cublas = nullptr, cublas_gemv = nullptr, cublaslt = nullptr;
  int (*candidates)(CudaQueue&, const GemmArgs&) = nullptr;
};
constexpr Launches launches() {
  if constexpr (kHasCuda)
    return {.cublas = launch_cublas, .cublas_gemv = launch_cublas_gemv, .cublaslt = launch_cublaslt, .candidates = cublaslt_candidates};
  return {};
}

}  // namespace

std::int64_t library_sums_bytes(const GemmProblem& problem) {
  Epilogue plain;
  plain.accumulate = problem.epilogue.accumulate;
  return problem.epilogue == plain ? 0 : split_bytes(problem, 2) / 2;
}

const GemmKernel kCublasKernel = {.composition = {.kernel = "cublas"},
                                  .backend = Backend::cuda,
                                  .reference = true,
                                  .tiles = kLibraryTiles,
                                  .own_refusal = refuse,
                                  .own_plan = plan,
                                  .launch_cuda = launches().cublas};

const GemmKernel kCublasGemvKernel = {.composition = {.kernel = "cublas_gemv"},
                                      .backend = Backend::cuda,
                                      .reference = true,
                                      .tiles = kLibraryTiles,
                                      .own_refusal = refuse_cublas_gemv,
                                      .own_plan = plan,
                                      .launch_cuda = launches().cublas_gemv};

const GemmKernel kCublasLtKernel = {.composition = {.kernel = "cublaslt"},
                                    .backend = Backend::cuda,
                                    .reference = true,
                                    .tiles = kLibraryTiles,
                                    .sums_outputs = true,
                                    .own_refusal = refuse_cublaslt,
                                    .own_plan = plan,
                                    .launch_cuda = launches().cublaslt,
                                    .candidates = launches().candidates};

}  // namespace tilewave
