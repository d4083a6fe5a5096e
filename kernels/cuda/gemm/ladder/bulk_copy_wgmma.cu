// The first row on Hopper's own instructions. One thread asks TMA for boxes of A and B, which arrive in shared
// memory swizzled and counted by a barrier; two warpgroups multiply straight from there with wgmma, 64 rows each, and store from
// their registers. One tile a block. A stage is loaded anew as soon as both warpgroups are done with it.
#include "kernels/cuda/gemm/sm90/warpgroup_gemm.h"
#include "kernels/gemm/ladder/bulk_copy_wgmma.h"

namespace tilewave {
namespace {

constexpr Tile kTile = kBulkCopyWgmmaTiles[0];
constexpr int kStages = kBulkCopyWgmmaStages;
constexpr int kThreads = 2 * kWarpgroup;

struct SharedStorage {
  OperandStage<kTile.n, kTile.m> stages[kStages];
  Ones ones;
  alignas(1024) Mbarrier full[kStages];
};
static_assert(sizeof(SharedStorage) == bulk_copy_wgmma_shared_bytes(kTile), "the plan knows what a block needs");
static_assert(kThreads / 32 * 2 * kStagingBytes <= sizeof(OperandStage<kTile.n, kTile.m>), "a stage has room for the warps' sums");
static_assert(kTile.n == 2 * kBox, "a warpgroup takes 64 rows");

__global__ void __launch_bounds__(kThreads, 1) bulk_copy_wgmma(const __grid_constant__ WarpgroupGemm gemm) {
  extern __shared__ __align__(1024) std::byte storage[];
  auto& shared = storage_in<SharedStorage>(storage);
  const int tile = static_cast<int>(blockIdx.x), warpgroup = static_cast<int>(threadIdx.x) / kWarpgroup;
  const int row = tile / gemm.tiles_m * static_cast<int>(kTile.n), col = tile % gemm.tiles_m * static_cast<int>(kTile.m);

  // Prologue.
  const auto load = [&](int k_tile) {
    load_stage(shared.stages[k_tile % kStages], gemm, shared.full[k_tile % kStages], k_tile * kBox, row, col);
  };
  if (threadIdx.x == 0) {
    mbarrier_init(shared.full, 1);
    mbarrier_init_fence();
    for (int k_tile = 0; k_tile < min(kStages, gemm.k_tiles); ++k_tile) load(k_tile);
  }
  shared.ones.fill(gemm.operand_dtype);
  __syncthreads();

  // Main loop.
  float accumulators[1][kTile.m / 2];  // [64, tile m]
  with_mma_form(AnyMmaForm{}, gemm, gemm.epilogue.bias_gradient.data != nullptr && col == 0, [&](auto mma_form) {
    float row_sums[1][4];  // [64, 8]
    RingPosition<kStages> at;
    for (int k_tile = 0; k_tile < gemm.k_tiles; ++k_tile, at.advance()) {
      mbarrier_wait(shared.full[at.stage], at.parity);
      multiply(mma_form, shared.stages[at.stage], shared.ones, warpgroup, k_tile > 0, accumulators, row_sums);
      wgmma_wait<0>();
      __syncthreads();
      if (k_tile + kStages < gemm.k_tiles && elect_lane_of(0)) load(k_tile + kStages);
    }
    if constexpr (mma_form.kSumsRows) finish_bias_gradient(gemm.epilogue, row + warpgroup * kBox, row_sums[0]);
  });

  // Epilogue.
  std::byte* const scratch = shared.stages[0].rows[0] + threadIdx.x / 32 * (2 * kStagingBytes);  // every stage is done with
  scale(gemm.epilogue.alpha, accumulators);
  for_each_subtile<1>(gemm.epilogue, row + warpgroup * kBox, col, accumulators,
                      [&](int, const SubtileAt& at, const float(&z)[kSubtileValues]) { finish_elements(gemm.epilogue, scratch, at, z); });
}

}  // namespace

void launch_bulk_copy_wgmma(CudaQueue& queue, const GemmCall& call) {
  const WarpgroupGemm gemm = warpgroup_gemm(call);
  TW_CUDA(cudaFuncSetAttribute(bulk_copy_wgmma, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(SharedStorage)));
  bulk_copy_wgmma<<<static_cast<unsigned>(call.plan.blocks), kThreads, sizeof(SharedStorage), stream_of(queue)>>>(gemm);
  TW_CUDA_LAUNCHED("bulk_copy_wgmma");
}

}  // namespace tilewave
