// Model: a warp's step of K is a load of each operand and 32 products. It takes a share of the arithmetic's rate; where the columns'
// operand lies along K, its 32 lanes read 32 lines, one a cycle; and no block steps faster than loads arrive, from the first-level cache
// or from behind it.
#include "kernels/gemm/simt/cuda_cores.h"

#include "kernels/core/queue.h"
#include "kernels/gemm/cost/cost_model.h"
#include "kernels/gemm/facts/has_cuda.h"
#include "kernels/gemm/facts/residues.h"
#include "kernels/gemm/simt/cuda_core_refusals.h"

namespace tilewave {
namespace {

constexpr std::int64_t kWarps = kCudaCoresTiles[0].m * kCudaCoresTiles[0].n / 32, kBlocksPerSm = 8;
constexpr double kApartCycles = 33.0;                          // of a step whose lanes read lines apart
constexpr double kNearCycles = 80.0;                           // of a load from the first-level cache
constexpr double kFarCycles = 180.0;                           // and from behind it,
constexpr std::int64_t kNearBytes = std::int64_t{128} * 1024;  // where the columns' operand is larger than this

GemmPlan plan(const GemmProblem& problem, Tile tile, const DeviceInfo& device, int) {
  GemmPlan plan = plan_stored_tiles(problem, tile, device.sm_count * kBlocksPerSm);
  const CostModel& time = cost_model_of(device);
  const SidesInMemory sides = sides_in_memory(problem);
  const double rate = cuda_core_rate(problem, device), multiplying = 32.0 / (time.one_output_fraction * rate);
  const double step = sides.cols_along_k ? std::max(multiplying, kApartCycles) : multiplying;
  const std::int64_t size = size_of(problem.operand_dtype);
  const double arrival = sides.cols * problem.k * size <= kNearBytes ? kNearCycles : kFarCycles;
  const auto step_of = [&](std::int64_t blocks) {
    return blocks == 0 ? 0.0 : std::max(arrival, static_cast<double>(blocks * kWarps) * step);
  };
  const std::int64_t blocks = ceil_div(plan.tiling.tiles, std::int64_t{device.sm_count});  // of an SM
  const std::int64_t waves = blocks / kBlocksPerSm;
  const auto depth = static_cast<double>(problem.k);
  const double cycles = depth * (static_cast<double>(waves) * step_of(kBlocksPerSm) + step_of(blocks % kBlocksPerSm));
  const auto taken = static_cast<double>(plan.tiling.tiles * tile.m * tile.n) * depth;
  const GemmWork memory = memory_work(problem, device);
  plan.predicted_s = seconds_of({.schedule_cycles = time.mma_fill_cycles + cycles,
                                 .peak_cycles = taken / (static_cast<double>(device.sm_count) * rate),
                                 .read_bytes = memory.read_bytes,
                                 .written_bytes = memory.written_bytes},
                                device);
  return plan;
}

}  // namespace

const GemmKernel kCudaCoresKernel = {.composition = {.kernel = "cuda_cores"},
                                     .backend = Backend::cuda,
                                     .tiles = kCudaCoresTiles,
                                     .own_refusal = refuse_without_cuda_cores,
                                     .own_plan = plan,
                                     .launch_cuda = cuda_launch<launch_cuda_cores>()};

}  // namespace tilewave
