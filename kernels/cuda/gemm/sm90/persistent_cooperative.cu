// Adds to warp_specialized: blocks that stay and take tile after tile in an order that keeps operands in L2, so that the producer
// loads the next tile's stages while the consumers finish this one; clusters of two blocks, one above the other in D, that share
// each load of their columns; and stores by TMA from swizzled strips, which run under the next tile's products. A block's
// last tile has no next: its consumers take the last k_tiles in turn, so that one finishes under the other's products.
#include "kernels/cuda/gemm/sm90/tile_loads.h"
#include "kernels/gemm/facts/with_tile.h"
#include "kernels/gemm/sm90/persistent_cooperative.h"

namespace tilewave {
namespace {

// kGradient: what is_cooperative_gradient says.
template <int kM, int kN, bool kGradient>
struct Config {
  static constexpr Tile kTile = {kM, kN};
  static constexpr int kStages = cooperative_stages(kTile, kGradient), kStagingBuffers = cooperative_staging_buffers(kTile, kGradient);
  static constexpr int kConsumers = cooperative_consumers(kTile), kMmaTiles = kN / kBox / kConsumers;  // of 64 rows, each consumer's
  static constexpr int kOrderedKTiles =
      kStages - 1;  // of the last tile's k_tiles: the ring's but one, since a stage is released a block late
  static constexpr int kThreads = (1 + kConsumers) * kWarpgroup;
  static constexpr int kProducerRegisters = kConsumers == 2 ? 40 : 32, kConsumerRegisters = kConsumers == 2 ? 232 : 160;

  struct SharedStorage {
    OperandStage<kN, kM> stages[kStages];
    std::byte staging[kConsumers * 4][kStagingBuffers * kStagingBytes];  // a warp's own
    Ones ones;
    alignas(1024) Ring<kStages> ring;
    LoadsBegun loads;
    Mbarrier sides[kConsumers * 4][kStagingBuffers];
  };
  static_assert(sizeof(SharedStorage) == cooperative_bytes(kTile, kGradient), "the plan knows what a block needs");
  static_assert(kConsumers * kMmaTiles * kBox == kN, "consumers share the rows of a tile");
};

template <class C, class P>
__global__ void __launch_bounds__(C::kThreads, 1) persistent_cooperative(const __grid_constant__ WarpgroupGemm gemm) {
  extern __shared__ __align__(1024) std::byte storage[];
  auto& shared = storage_in<typename C::SharedStorage>(storage);
  constexpr int kTileM = static_cast<int>(C::kTile.m), kTileN = static_cast<int>(C::kTile.n);

  // Prologue.
  if (threadIdx.x == 0) {
    shared.loads.set(0);
    shared.ring.init(C::kConsumers * gemm.cluster);
    mbarrier_init(shared.sides, 1);
    mbarrier_init_fence();
  }
  shared.ones.fill(gemm.operand_dtype);
  prefetch_first_k_tiles<C::kThreads>(gemm);
  __syncthreads();
  cluster_sync_relaxed();

  if (threadIdx.x < kWarpgroup) {  // The producer.
    reg_dealloc<C::kProducerRegisters>();
    feed_tiles<C>(shared, gemm);
  } else {  // A consumer.
    reg_alloc<C::kConsumerRegisters>();
    wait_for_previous_kernel();
    const int consumer = warpgroup_rank() - 1, thread = static_cast<int>(threadIdx.x) % kWarpgroup;
    const int warp = consumer * 4 + thread / 32;
    WarpStaging<C::kStagingBuffers> staging = {
        .first = shared.staging[warp], .arrived = shared.sides[warp], .lane = static_cast<int>(threadIdx.x % 32)};
    RingPosition<C::kStages> at;
    const auto release = [&](int stage) {  // to every producer that writes here
      shared.ring.release_to_cluster(stage, gemm.cluster, thread);
    };
    for (int tile_index = first_tile_index(gemm); tile_index < gemm.raster.tiles; tile_index += gemm.clusters) {
      const TileAt tile = own_tile(gemm, tile_index);
      const int row = tile.n * kTileN + consumer * C::kMmaTiles * kBox, col = tile.m * kTileM;

      TileEpilogue<C::kMmaTiles, kTileM, C::kStagingBuffers> epilogue(gemm.epilogue, staging, row, col);

      const bool last = tile_index + gemm.clusters >= gemm.raster.tiles;  // nothing follows to finish under
      const int waits_at = last && consumer > 0 ? max(gemm.k_tiles - C::kOrderedKTiles, 0) : -1;
      const int passes_at = last && consumer + 1 < C::kConsumers ? gemm.k_tiles - 1 : -1;

      // Main loop.
      float accumulators[C::kMmaTiles][kTileM / 2];  // [64, tile m] of each
      with_mma_form(P{}, gemm, gemm.epilogue.bias_gradient.data != nullptr && col == 0, [&](auto mma_form) {
        float row_sums[C::kMmaTiles][4];  // [64, 8] of each
        const auto issue = [&](int k_tile) {
          multiply(mma_form, shared.stages[at.stage], shared.ones, consumer * C::kMmaTiles, k_tile > 0, accumulators, row_sums);
          if (k_tile == passes_at) order_barrier_arrive(consumer);
        };
        const auto wait_in_order = [&](int k_tile) {
          if (k_tile == waits_at) order_barrier_wait(consumer - 1);
        };
        const int last_stage = shared.ring.multiply_k_tiles(at, 0, gemm.k_tiles, issue, release, wait_in_order);
        wgmma_wait<0>();
        release(last_stage);
        if constexpr (mma_form.kSumsRows) {
          for (int i = 0; i < C::kMmaTiles; ++i) finish_bias_gradient(gemm.epilogue, row + i * kBox, row_sums[i]);
        }
      });

      // Epilogue.
      if constexpr (std::is_same_v<P, AnyMmaForm>) {
        epilogue.finish(accumulators);
      } else if constexpr (C::kStagingBuffers == 1) {
        epilogue.template store_whole<typename P::T>(accumulators);
      } else {
        epilogue.template store<typename P::T>(accumulators);
      }
    }
    tma_store_wait_read<0>();
  }
}

}  // namespace

void launch_persistent_cooperative(CudaQueue& queue, const GemmCall& call) {
  with_tile<kPersistentCooperativeTiles>("persistent_cooperative", call.plan.tile, [&]<int kM, int kN>() {
    const WarpgroupGemm gemm = warpgroup_gemm(call);
    const auto launch_mma_form = [&]<class P>(P) {
      using C = Config<kM, kN, !std::is_same_v<P, AnyMmaForm>>;
      launch_clusters(queue, "persistent_cooperative", persistent_cooperative<C, P>, gemm, call.plan.blocks, C::kThreads,
                      sizeof(typename C::SharedStorage));
    };
    if (is_cooperative_gradient(call.problem, call.plan.tile)) {
      with_wgrad_mma_form(gemm, launch_mma_form);
    } else {
      launch_mma_form(AnyMmaForm{});
    }
  });
}

}  // namespace tilewave
