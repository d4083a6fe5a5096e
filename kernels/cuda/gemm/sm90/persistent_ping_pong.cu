// Adds to persistent_cooperative: the consumers take turns. Each has a tile of its own, every second of the block's, so that one
// finishes its sums (activations, side inputs, stores) while the other keeps the tensor cores busy. A consumer skips the stages of
// its partner's tile, and begins when the partner has issued its last product: a barrier knows two phases apart, no more.
#include "kernels/cuda/gemm/sm90/tile_loads.h"
#include "kernels/gemm/facts/with_tile.h"
#include "kernels/gemm/sm90/persistent_ping_pong.h"

namespace tilewave {
namespace {

template <int kM, int kN>
struct Config {
  static constexpr Tile kTile = {kM, kN};
  static constexpr int kStages = ping_pong_stages(kTile), kStagingBuffers = kPingPongStagingBuffers;
  static constexpr int kConsumers = kPingPongConsumers, kMmaTiles = kN / kBox;  // of 64 rows
  static constexpr int kThreads = (1 + kConsumers) * kWarpgroup;
  static constexpr int kProducerRegisters = 40, kConsumerRegisters = 232;

  struct SharedStorage {
    OperandStage<kN, kM> stages[kStages];
    std::byte staging[kConsumers * 4][kStagingBuffers * kStagingBytes];  // a warp's own
    Ones ones;
    alignas(1024) Ring<kStages> ring;
    LoadsBegun loads;
    Mbarrier sides[kConsumers * 4][kStagingBuffers];
    Mbarrier order[kConsumers];
  };
  static_assert(sizeof(SharedStorage) == persistent_ping_pong_shared_bytes(kTile), "the plan knows what a block needs");
};

template <class C, class P>
__global__ void __launch_bounds__(C::kThreads, 1) persistent_ping_pong(const __grid_constant__ WarpgroupGemm gemm) {
  extern __shared__ __align__(1024) std::byte storage[];
  auto& shared = storage_in<typename C::SharedStorage>(storage);
  constexpr int kTileM = static_cast<int>(C::kTile.m), kTileN = static_cast<int>(C::kTile.n);

  // Prologue.
  if (threadIdx.x == 0) {
    shared.loads.set(0);
    shared.ring.init(gemm.cluster);
    mbarrier_init(shared.order, 1);
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
    if (consumer == 1) at.advance(gemm.k_tiles);
    unsigned order_parity = consumer == 0 ? 1 : 0;  // the first to begin waits for nobody
    for (int index = first_tile_index(gemm) + consumer * gemm.clusters; index < gemm.raster.tiles; index += C::kConsumers * gemm.clusters) {
      const TileAt tile = own_tile(gemm, index);
      const int row = tile.n * kTileN, col = tile.m * kTileM;

      TileEpilogue<C::kMmaTiles, kTileM, C::kStagingBuffers> epilogue(gemm.epilogue, staging, row, col);

      // Main loop.
      mbarrier_wait(shared.order[consumer], order_parity);
      order_parity ^= 1;
      float accumulators[C::kMmaTiles][kTileM / 2];  // [64, tile m] of each
      with_mma_form(P{}, gemm, gemm.epilogue.bias_gradient.data != nullptr && col == 0, [&](auto mma_form) {
        float row_sums[C::kMmaTiles][4];  // [64, 8] of each
        const auto issue = [&](int k_tile) {
          multiply(mma_form, shared.stages[at.stage], shared.ones, 0, k_tile > 0, accumulators, row_sums);
        };
        const int last_stage = shared.ring.multiply_k_tiles(at, 0, gemm.k_tiles, issue, release);
        if (thread == 0) mbarrier_arrive(shared.order[1 - consumer]);
        wgmma_wait<0>();
        release(last_stage);
        if constexpr (mma_form.kSumsRows) {
          for (int i = 0; i < C::kMmaTiles; ++i) finish_bias_gradient(gemm.epilogue, row + i * kBox, row_sums[i]);
        }
      });
      at.advance(gemm.k_tiles);  // the partner's

      // Epilogue.
      if constexpr (std::is_same_v<P, AnyMmaForm>) {
        epilogue.finish(accumulators);
      } else {
        epilogue.template store<typename P::T>(accumulators);
      }
    }
    tma_store_wait_read<0>();
  }
}

}  // namespace

void launch_persistent_ping_pong(CudaQueue& queue, const GemmCall& call) {
  with_tile<kPersistentPingPongTiles>("persistent_ping_pong", call.plan.tile, [&]<int kM, int kN>() {
    using C = Config<kM, kN>;
    const WarpgroupGemm gemm = warpgroup_gemm(call);
    with_wgrad_mma_form(gemm, [&]<class P>(P) {
      launch_clusters(queue, "persistent_ping_pong", persistent_ping_pong<C, P>, gemm, call.plan.blocks, C::kThreads,
                      sizeof(typename C::SharedStorage));
    });
  });
}

}  // namespace tilewave
