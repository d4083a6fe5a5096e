// Model: gpu_model.h's, tiles that whole waves leave in parts of K; a smaller tile reads shared memory more often for each product.
#include "kernels/gemm/sm80/tensor_core_persistent.h"

#include <algorithm>

#include "kernels/core/queue.h"
#include "kernels/gemm/facts/has_cuda.h"
#include "kernels/gemm/sm80/tensor_core_refusals.h"

namespace tilewave {
namespace {

// Whichever way the tile lies in memory.
constexpr std::int64_t shared_bytes(Tile tile) {
  return tensor_core_shared_bytes(tile.m, tile.n, tensor_core_persistent_config(tile.m, tile.n).stages);
}
static_assert(std::ranges::all_of(kTensorCorePersistentTiles,
                                  [](Tile tile) { return shared_bytes(tile) == shared_bytes({.m = tile.n, .n = tile.m}); }));

double efficiency(Tile tile) {
  const std::int64_t smaller = std::min(tile.m, tile.n), larger = std::max(tile.m, tile.n);
  if (smaller == 128) return larger == 256 ? 1.0 : 0.97;
  return larger >= 128 ? 0.85 : 0.7;
}

GemmPlan plan(const GemmProblem& problem, Tile tile, const DeviceInfo& device, int split) {
  const auto [rows, cols] = in_memory(problem, tile);
  const TensorCoreConfig config = tensor_core_persistent_config(rows, cols);
  const std::int64_t blocks = resident_blocks(config.blocks, shared_bytes(tile), device);
  return plan_on_gpu(problem, tile, device,
                     {.multiply_adds_per_cycle = efficiency(tile) * cost_model_of(device).mma_fraction * mma_rate(problem, device),
                      .peak_multiply_adds_per_cycle = mma_rate(problem, device),
                      .blocks_per_sm = static_cast<int>(blocks),
                      .stages = config.stages,
                      .depth = 128 / size_of(problem.operand_dtype),
                      .min_split = 512,
                      .max_ctas = device.sm_count * blocks,
                      .cuts_the_rest = true,
                      .split = split});
}

}  // namespace

const GemmKernel kTensorCorePersistentKernel = {.composition = {.kernel = "tensor_core_persistent"},
                                                .backend = Backend::cuda,
                                                .tensor_cores = true,
                                                .tiles = kTensorCorePersistentTiles,
                                                .shared_bytes = shared_bytes,
                                                .own_refusal = refuse_persistent,
                                                .own_plan = plan,
                                                .launch_cuda = cuda_launch<launch_tensor_core_persistent>()};

}  // namespace tilewave
