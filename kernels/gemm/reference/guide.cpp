// Model: kernels/gemm/guide_tiles.h's. The guide orders its tiles and prints few rates: 95 to 100 of a V100's 125 TFLOP/s and 250 of an
// A100's 312 at best; multiples of 8 about 6 times what CUDA cores do without (cuBLAS 10.1), and 2 to 4 times where Tensor Cores take
// unaligned operands too (cuBLAS 11): those run at a third to two thirds.
#include "kernels/gemm/reference/guide.h"

#include <algorithm>

#include "kernels/core/device_profiles.h"
#include "kernels/core/error.h"
#include "kernels/gemm/cost/cost_model.h"

namespace tilewave {
namespace {

bool on_tensor_cores(const GemmProblem& problem, const DeviceInfo& device) {
  const MathRates rates = math_rates(device.capability);
  const int rate = problem.operand_dtype == DType::f16                                     ? rates.tensor_f16
                   : problem.operand_dtype == DType::bf16                                  ? rates.tensor_bf16
                   : problem.operand_dtype == DType::f32 && problem.math == MathMode::tf32 ? rates.tensor_tf32
                                                                                           : 0;
  return rate > 0;
}

double tile_efficiency(Tile tile) {
  const auto at_least = [area = tile.m * tile.n](Tile other) { return area >= other.m * other.n; };
  return at_least({256, 128}) ? 0.8 : at_least({128, 128}) ? 0.75 : at_least({128, 64}) ? 0.6 : 0.45;
}

// K counts by itself: a wgrad's, the tokens, is nobody's fastest-varying dimension, and it gains from multiples of 8 (Optimizing
// Linear/Fully-Connected Layers, figure 8b).
double alignment_efficiency(const GemmProblem& problem) {
  const std::int64_t of_k = alignment_of(0, problem.k * size_of(problem.operand_dtype));
  const std::int64_t alignment = std::min({problem.a_alignment, problem.b_alignment, problem.d_alignment, of_k});
  return alignment >= 16 ? 1.0 : alignment >= 8 ? 0.67 : alignment >= 4 ? 0.5 : 0.33;
}

// Why the guide's rows do not stand for the device; empty where they do.
std::string refuse_device(const DeviceInfo& device) {
  constexpr int kFirstWithout = 100;  // tilewave has no kernels of Blackwell's own
  if (device.index != kNoDevice) return "it stands for a library's kernels in plans for devices that are not here, and cannot be run.";
  if (device.capability >= kMinCudaCapability && device.capability < kFirstWithout) {
    return "tilewave has kernels of its own for this device.";
  }
  return {};
}

std::string refuse_tensor_cores(const GemmProblem& problem, const DeviceInfo& device) {
  const std::string refusal = refuse_device(device);
  if (!refusal.empty()) return refusal;
  if (on_tensor_cores(problem, device)) return {};
  return concat("the Tensor Cores of ", device.name, " do not multiply ", name_of(problem.operand_dtype), " with ", name_of(problem.math),
                " math.");
}

std::string refuse_cuda_cores(const GemmProblem& problem, const DeviceInfo& device) {
  const std::string refusal = refuse_device(device);
  if (!refusal.empty()) return refusal;
  if (problem.operand_dtype != DType::bf16 || device.capability >= kMinCudaCapability) return {};
  return concat(device.name, " has no bf16; plan for it in fp16.");
}

GemmPlan guide_plan(bool tensor_cores, const GemmProblem& problem, Tile tile, const DeviceInfo& device, std::int64_t blocks_per_sm) {
  GemmPlan plan = plan_tiles(problem, tile, device.sm_count * blocks_per_sm);
  const double peak = tensor_cores                          ? peak_flops_per_s(device, problem.operand_dtype, problem.math)
                      : problem.operand_dtype == DType::f64 ? peak_flops_per_s(device, DType::f64, MathMode::ieee)
                                                            : peak_flops_per_s(device, DType::f32, MathMode::ieee);
  const double efficiency = tile_efficiency(tile) * (tensor_cores ? alignment_efficiency(problem) : 1.0);
  // What the SM with the most tiles multiplies: whole waves, and its share of the tail.
  const std::int64_t tiles_of_sm = plan.tiling.full_waves * blocks_per_sm + ceil_div(plan.tiling.tail_tiles, device.sm_count);
  const double flops = 2.0 * static_cast<double>(tile.m * tile.n * problem.k * tiles_of_sm) * static_cast<double>(device.sm_count);
  const double math_s = peak > 0.0 ? flops / (efficiency * peak) : seconds_of(flops, device);
  const double memory_s = device.bandwidth_bytes_per_s > 0.0 ? static_cast<double>(problem.bytes()) / device.bandwidth_bytes_per_s : 0.0;
  plan.predicted_s = kGuideLaunchSeconds + std::max(math_s, memory_s);
  return plan;
}

GemmPlan plan_tensor_cores(const GemmProblem& problem, Tile tile, const DeviceInfo& device, int) {
  return guide_plan(true, problem, tile, device, guide_blocks_per_sm(tile));
}
GemmPlan plan_cuda_cores(const GemmProblem& problem, Tile tile, const DeviceInfo& device, int) {
  return guide_plan(false, problem, tile, device, guide_blocks_per_sm(tile));
}

}  // namespace

GemmPlan plan_guide_tile(const GemmProblem& problem, Tile tile, const DeviceInfo& device, std::int64_t blocks_per_sm) {
  TW_CHECK_INPUT(tile.m > 0 && tile.n > 0 && blocks_per_sm > 0 && device.sm_count > 0, "tiles of ", tile.m, "x", tile.n, ", ",
                 blocks_per_sm, " on each of ", device.sm_count, " SMs: every one of these numbers is at least 1.");
  const bool tensor_cores = on_tensor_cores(problem, device);
  GemmPlan plan = guide_plan(tensor_cores, problem, tile, device, blocks_per_sm);
  plan.composition = (tensor_cores ? kGuideTensorCoresKernel : kGuideCudaCoresKernel).composition;
  return plan;
}

const GemmKernel kGuideTensorCoresKernel = {.composition = {.kernel = "guide_tensor_cores"},
                                            .backend = Backend::cuda,
                                            .tensor_cores = true,
                                            .tiles = kGuideTiles,
                                            .own_refusal = refuse_tensor_cores,
                                            .own_plan = plan_tensor_cores};
const GemmKernel kGuideCudaCoresKernel = {.composition = {.kernel = "guide_cuda_cores"},
                                          .backend = Backend::cuda,
                                          .tiles = kGuideTiles,
                                          .own_refusal = refuse_cuda_cores,
                                          .own_plan = plan_cuda_cores};

}  // namespace tilewave
