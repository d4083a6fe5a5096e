// Model: A streams from the caches at kBytesPerCycle a thread, once for each column of tiles; a product of vectors costs
// kCyclesPerVector, loads of B included, and adding up a vector's lanes kCyclesPerOutput.
#include "kernels/gemm/cpu/dot_products.h"

#include <algorithm>

#include "kernels/core/error.h"
#include "kernels/gemm/cost/cost_model.h"

namespace tilewave {
namespace {

constexpr double kBytesPerCycle = 24.0;
constexpr double kCyclesPerVector = 0.6;
constexpr double kCyclesPerOutput = 5.0;
constexpr double kLaunchCycles = 500.0;

std::string refuse(const GemmProblem& problem, const DeviceInfo&) {
  if (problem.operand_dtype != DType::f32 && problem.operand_dtype != DType::f64) {
    return concat("it multiplies f32 and f64, not ", name_of(problem.operand_dtype), ".");
  }
  if (problem.output_dtype != problem.operand_dtype) {
    return concat("its output has the operands' type, ", name_of(problem.operand_dtype), ", not ", name_of(problem.output_dtype), ".");
  }
  if (problem.a_major != Major::k || problem.b_major != Major::k || problem.d_major != Major::m) {
    return concat("it reads A and B along K and writes D along M; here A is ", name_of(problem.a_major), "-major, B ",
                  name_of(problem.b_major), "-major and D ", name_of(problem.d_major), "-major.");
  }
  if (problem.epilogue.bias_gradient) return "it sums no bias gradient.";
  return {};
}

GemmPlan plan(const GemmProblem& problem, Tile tile, const DeviceInfo& device, int) {
  GemmPlan plan = plan_tiles(problem, tile, device.sm_count);
  const std::int64_t size = size_of(problem.operand_dtype), lanes = std::max(device.vector_bytes, std::int64_t{16}) / size;
  const auto outputs = static_cast<double>(problem.m * problem.n);
  const double cycles = static_cast<double>(problem.m * problem.k * size * plan.tiling.tiles_n) / kBytesPerCycle +
                        outputs * (kCyclesPerOutput + kCyclesPerVector * static_cast<double>(ceil_div(problem.k, lanes)));
  plan.predicted_s = seconds_of(kLaunchCycles + cycles / (static_cast<double>(device.sm_count) * plan.tiling.wave_efficiency), device);
  return plan;
}

}  // namespace

const GemmKernel kDotProductsKernel = {.composition = {.kernel = "dot_products"},
                                       .backend = Backend::cpu,
                                       .tiles = kDotProductsTiles,
                                       .own_refusal = refuse,
                                       .own_plan = plan,
                                       .launch_cpu = launch_dot_products};

}  // namespace tilewave
