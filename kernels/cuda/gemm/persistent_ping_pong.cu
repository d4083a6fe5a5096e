// Adds to persistent_cooperative: the consumers take turns. Each has a tile of its own, every second of the block's, so that one
// finishes its sums (activations, side inputs, stores) while the other keeps the tensor cores busy. A consumer skips the stages of
// its partner's tile, and begins when the partner has issued its last product: a barrier knows two phases apart, no more.
#include "kernels/cuda/gemm/tile_loads.h"
#include "kernels/gemm/rows/persistent_ping_pong.h"
#include "kernels/gemm/with_tile.h"

namespace tilewave {
namespace {

template <int kM, int kN>
struct Config {
  static constexpr Tile kTile = {kM, kN};
  static constexpr int kStages = ping_pong_stages(kTile), kStrips = kPingPongStrips;
  static constexpr int kConsumers = kPingPongConsumers, kBlocks = kN / kBox;  // of 64 rows
  static constexpr int kThreads = (1 + kConsumers) * kWarpgroup;
  static constexpr int kProducerRegisters = 40, kConsumerRegisters = 232;

  struct SharedStorage {
    OperandStage<kN, kM> stages[kStages];
    std::byte strips[kConsumers * 4][kStrips * kStripBytes];  // a warp's own
    Ones ones;
    alignas(1024) Mbarrier full[kStages];
    Mbarrier empty[kStages];
    LoadsBegun loads;
    Mbarrier sides[kConsumers * 4][kStrips];
    Mbarrier turn[kConsumers];
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
    mbarrier_init(shared.full, 1);
    mbarrier_init(shared.empty, gemm.cluster);
    mbarrier_init(shared.turn, 1);
    mbarrier_init(shared.sides, 1);
    mbarrier_init_fence();
  }
  shared.ones.fill(gemm.operand_dtype);
  bring_first_blocks<C::kThreads>(gemm);
  __syncthreads();
  cluster_meet();

  if (threadIdx.x < kWarpgroup) {  // The producer.
    give_up_registers<C::kProducerRegisters>();
    feed_tiles<C>(shared, gemm);
  } else {  // A consumer.
    take_registers<C::kConsumerRegisters>();
    wait_for_previous_kernel();
    const int consumer = warpgroup_rank() - 1, thread = static_cast<int>(threadIdx.x) % kWarpgroup;
    const int warp = consumer * 4 + thread / 32;
    WarpStrips<C::kStrips> strips = {
        .first = shared.strips[warp], .arrived = shared.sides[warp], .lane = static_cast<int>(threadIdx.x % 32)};
    RingPosition<C::kStages> at;
    const auto release = [&](int stage) {  // to every producer that writes here
      if (thread < gemm.cluster) mbarrier_arrive_at(shared.empty[stage], thread);
    };
    if (consumer == 1) at.advance(gemm.blocks_k);
    unsigned turn = consumer == 0 ? 1 : 0;  // the first to begin waits for nobody
    for (int index = first_turn(gemm) + consumer * gemm.clusters; index < gemm.raster.tiles; index += C::kConsumers * gemm.clusters) {
      const TileAt tile = own_tile(gemm, index);
      const int row = tile.n * kTileN, col = tile.m * kTileM;

      TileEpilogue<C::kBlocks, kTileM, C::kStrips> epilogue(gemm.epilogue, strips, row, col);

      // Main loop.
      mbarrier_wait(shared.turn[consumer], turn);
      turn ^= 1;
      float sums[C::kBlocks][kTileM / 2];  // [64, tile m] of each
      with_product(P{}, gemm, gemm.epilogue.bias_gradient.data != nullptr && col == 0, [&](auto product) {
        float row_sums[C::kBlocks][4];  // [64, 8] of each
        int previous = 0;
        for (int block = 0; block < gemm.blocks_k; ++block, at.advance()) {
          mbarrier_wait(shared.full[at.stage], at.parity);
          multiply(product, shared.stages[at.stage], shared.ones, 0, block > 0, sums, row_sums);
          wgmma_wait<1>();
          if (block > 0) release(previous);
          previous = at.stage;
        }
        if (thread == 0) mbarrier_arrive(shared.turn[1 - consumer]);
        wgmma_wait<0>();
        release(previous);
        if constexpr (product.kSumsRows) {
          for (int i = 0; i < C::kBlocks; ++i) finish_bias_gradient(gemm.epilogue, row + i * kBox, row_sums[i]);
        }
      });
      at.advance(gemm.blocks_k);  // the partner's

      // Epilogue.
      if constexpr (std::is_same_v<P, AnyProduct>) {
        epilogue.finish(sums);
      } else {
        epilogue.template store<typename P::T>(sums);
      }
    }
    wait_boxes_read<0>();
  }
}

}  // namespace

void launch_persistent_ping_pong(CudaQueue& queue, const GemmArgs& args, const GemmPlan& plan) {
  with_tile<kPersistentPingPongTiles>("persistent_ping_pong", plan.tile, [&]<int kM, int kN>() {
    using C = Config<kM, kN>;
    const WarpgroupGemm gemm = warpgroup_gemm(args, plan);
    with_gradient_product(gemm, [&]<class P>(P) {
      launch_clusters(queue, "persistent_ping_pong", persistent_ping_pong<C, P>, gemm, plan.blocks, C::kThreads,
                      sizeof(typename C::SharedStorage));
    });
  });
}

}  // namespace tilewave
