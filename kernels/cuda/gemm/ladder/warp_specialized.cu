// Adds specialised warps to bulk_copy_wgmma: a producer keeps the ring of stages full, two consumer warpgroups keep the tensor cores
// busy, and nobody waits for both. Two barriers a stage: `full` counts the bytes that arrive, `empty` the consumers that are done,
// each one product late, so that the next product is already running. The producer gives up registers that the consumers' sums of
// 64 x 256 take.
#include "kernels/cuda/gemm/sm90/warpgroup_gemm.h"
#include "kernels/gemm/ladder/warp_specialized.h"

namespace tilewave {
namespace {

constexpr Tile kTile = kWarpSpecializedTiles[0];
constexpr int kStages = kWarpSpecializedStages;
constexpr int kConsumers = 2;
constexpr int kThreads = (1 + kConsumers) * kWarpgroup;
constexpr int kProducerRegisters = 40, kConsumerRegisters = 232;

struct SharedStorage {
  OperandStage<kTile.n, kTile.m> stages[kStages];
  Ones ones;
  alignas(1024) Ring<kStages> ring;
};
static_assert(sizeof(SharedStorage) == warp_specialized_shared_bytes(kTile), "the plan knows what a block needs");
static_assert(kTile.n == kConsumers * kBox, "a consumer takes 64 rows");

__global__ void __launch_bounds__(kThreads, 1) warp_specialized(const __grid_constant__ WarpgroupGemm gemm) {
  extern __shared__ __align__(1024) std::byte storage[];
  auto& shared = storage_in<SharedStorage>(storage);
  const int tile = static_cast<int>(blockIdx.x);
  const int row = tile / gemm.tiles_m * static_cast<int>(kTile.n), col = tile % gemm.tiles_m * static_cast<int>(kTile.m);

  // Prologue.
  if (threadIdx.x == 0) {
    shared.ring.init(kConsumers);
    mbarrier_init_fence();
  }
  shared.ones.fill(gemm.operand_dtype);
  __syncthreads();

  if (threadIdx.x < kWarpgroup) {  // The producer.
    reg_dealloc<kProducerRegisters>();
    if (elect_lane_of(0)) {
      RingPosition<kStages> at;
      shared.ring.load_k_tiles(at, 0, gemm.k_tiles, [&](int k_tile) {
        load_stage(shared.stages[at.stage], gemm, shared.ring.full[at.stage], k_tile * kBox, row, col);
      });
    }
  } else {  // A consumer: main loop, then epilogue.
    reg_alloc<kConsumerRegisters>();
    const int consumer = warpgroup_rank() - 1;
    const bool leads = threadIdx.x % kWarpgroup == 0;
    float accumulators[1][kTile.m / 2];  // [64, tile m]
    with_mma_form(AnyMmaForm{}, gemm, gemm.epilogue.bias_gradient.data != nullptr && col == 0, [&](auto mma_form) {
      float row_sums[1][4];  // [64, 8]
      RingPosition<kStages> at;
      const auto issue = [&](int k_tile) {
        multiply(mma_form, shared.stages[at.stage], shared.ones, consumer, k_tile > 0, accumulators, row_sums);
      };
      shared.ring.multiply_k_tiles(at, 0, gemm.k_tiles, issue, [&](int stage) { shared.ring.release_by(leads, stage); });
      end_mmas(gemm.epilogue.alpha, accumulators);
      if constexpr (mma_form.kSumsRows) finish_bias_gradient(gemm.epilogue, row + consumer * kBox, row_sums[0]);
    });
    sync_warps<kConsumers * kWarpgroup>();  // both are done with the stages
    std::byte* const scratch = shared.stages[0].rows[0] + (threadIdx.x / 32 - 4) * (2 * kStagingBytes);
    for_each_subtile<1>(gemm.epilogue, row + consumer * kBox, col, accumulators,
                        [&](int, const SubtileAt& at, const float(&z)[kSubtileValues]) { finish_elements(gemm.epilogue, scratch, at, z); });
  }
}

}  // namespace

void launch_warp_specialized(CudaQueue& queue, const GemmCall& call) {
  const WarpgroupGemm gemm = warpgroup_gemm(call);
  TW_CUDA(cudaFuncSetAttribute(warp_specialized, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(SharedStorage)));
  warp_specialized<<<static_cast<unsigned>(call.plan.blocks), kThreads, sizeof(SharedStorage), stream_of(queue)>>>(gemm);
  TW_CUDA_LAUNCHED("warp_specialized");
}

}  // namespace tilewave
