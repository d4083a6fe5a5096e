// Model: a multiply-add every kCyclesPerMultiplyAdd cycles in each thread of a CPU, an output at a time, and in each SM of a GPU, a block
// of outputs at a time.
#include "kernels/gemm/reference/naive.h"

#include <algorithm>

#include "kernels/core/queue.h"
#include "kernels/gemm/cost/cost_model.h"
#include "kernels/gemm/facts/has_cuda.h"

namespace tilewave {
namespace {

constexpr double kCyclesPerMultiplyAdd = 12.0;  // two look-ups of an element by dtype, and the latency of an fp64 sum

std::string refuse(const GemmProblem& problem, const DeviceInfo&) {
  const bool integers = problem.operand_dtype == DType::i32 || problem.output_dtype == DType::i32;
  return integers ? "it multiplies f64, f32, bf16 and f16, not i32." : "";
}

GemmPlan plan(const GemmProblem& problem, Tile tile, const DeviceInfo& device, int) {
  GemmPlan plan = plan_tiles(problem, tile, device.sm_count);
  const double multiply_adds = static_cast<double>(problem.flops()) / 2.0;
  plan.predicted_s =
      seconds_of(kCyclesPerMultiplyAdd * multiply_adds / (static_cast<double>(device.sm_count) * plan.tiling.wave_efficiency), device);
  return plan;
}

std::string refuse_on_gpu(const GemmProblem& problem, const DeviceInfo& device) {
  if (device.capability < kMinCudaCapability) return "it needs a GPU of compute capability 8.0 or newer.";
  return refuse(problem, device);
}

GemmPlan plan_on_gpu(const GemmProblem& problem, Tile tile, const DeviceInfo& device, int) {
  GemmPlan plan = plan_tiles(problem, tile, device.sm_count);
  const std::int64_t outputs = problem.m * problem.n;
  plan.tiling = tile_waves(outputs, 1, tile, device.sm_count);  // columns follow one another: only the last block is not full
  plan.blocks = plan.tiling.tiles;
  const std::int64_t waves = ceil_div(plan.blocks, device.sm_count);
  const double multiply_adds =
      static_cast<double>(waves * std::min(outputs, tile.m)) * static_cast<double>(problem.k);  // of the busiest SM
  const GemmWork memory = memory_work(problem, device);
  plan.predicted_s = seconds_of(
      {.schedule_cycles = kCyclesPerMultiplyAdd * multiply_adds, .read_bytes = memory.read_bytes, .written_bytes = memory.written_bytes},
      device);
  return plan;
}

}  // namespace

const GemmKernel kNaiveKernel = {.composition = {.kernel = "naive"},
                                 .backend = Backend::cpu,
                                 .tiles = kNaiveTiles,
                                 .sums_outputs = true,
                                 .own_refusal = refuse,
                                 .own_plan = plan,
                                 .launch_cpu = launch_naive};

const GemmKernel kCudaNaiveKernel = {.composition = {.kernel = "naive"},
                                     .backend = Backend::cuda,
                                     .tiles = kCudaNaiveTiles,
                                     .sums_outputs = true,
                                     .own_refusal = refuse_on_gpu,
                                     .own_plan = plan_on_gpu,
                                     .launch_cuda = cuda_launch<launch_naive>()};

}  // namespace tilewave
