// Adds to warp_specialized: blocks that stay and take tile after tile in an order that keeps operands in L2, so that the producer
// loads the next tile's stages while the consumers finish this one; clusters of two blocks, one above the other in D, that share
// each load of their columns; and stores by the copy engine from swizzled strips, which run under the next tile's products. A block's
// last tile has no next: its consumers take the last blocks of K in turn, so that one finishes under the other's products.
#include "kernels/cuda/gemm/tile_loads.h"
#include "kernels/gemm/rows/persistent_cooperative.h"
#include "kernels/gemm/with_tile.h"

namespace tilewave {
namespace {

// kGradient: what is_cooperative_gradient says.
template <int kM, int kN, bool kGradient>
struct Config {
  static constexpr Tile kTile = {kM, kN};
  static constexpr int kStages = cooperative_stages(kTile, kGradient), kStrips = cooperative_strips(kTile, kGradient);
  static constexpr int kConsumers = cooperative_consumers(kTile), kBlocks = kN / kBox / kConsumers;  // of 64 rows, each consumer's
  static constexpr int kInTurn = kStages - 1;  // of the last tile's blocks of K: the ring's but one, since a stage is released a block late
  static constexpr int kThreads = (1 + kConsumers) * kWarpgroup;
  static constexpr int kProducerRegisters = kConsumers == 2 ? 40 : 32, kConsumerRegisters = kConsumers == 2 ? 232 : 160;

  struct SharedStorage {
    OperandStage<kN, kM> stages[kStages];
    std::byte strips[kConsumers * 4][kStrips * kStripBytes];  // a warp's own
    Ones ones;
    alignas(1024) Mbarrier full[kStages];
    Mbarrier empty[kStages];
    LoadsBegun loads;
    Mbarrier sides[kConsumers * 4][kStrips];
  };
  static_assert(sizeof(SharedStorage) == cooperative_bytes(kTile, kGradient), "the plan knows what a block needs");
  static_assert(kConsumers * kBlocks * kBox == kN, "consumers share the rows of a tile");
};

template <class C, class P>
__global__ void __launch_bounds__(C::kThreads, 1) persistent_cooperative(const __grid_constant__ WarpgroupGemm gemm) {
  extern __shared__ __align__(1024) std::byte storage[];
  auto& shared = storage_in<typename C::SharedStorage>(storage);
  constexpr int kTileM = static_cast<int>(C::kTile.m), kTileN = static_cast<int>(C::kTile.n);

  // Prologue.
  if (threadIdx.x == 0) {
    shared.loads.set(0);
    mbarrier_init(shared.full, 1);
    mbarrier_init(shared.empty, C::kConsumers * gemm.cluster);
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
    for (int turn = first_turn(gemm); turn < gemm.raster.tiles; turn += gemm.clusters) {
      const TileAt tile = own_tile(gemm, turn);
      const int row = tile.n * kTileN + consumer * C::kBlocks * kBox, col = tile.m * kTileM;

      TileEpilogue<C::kBlocks, kTileM, C::kStrips> epilogue(gemm.epilogue, strips, row, col);

      const bool last = turn + gemm.clusters >= gemm.raster.tiles;  // nothing follows to finish under
      const int waits_at = last && consumer > 0 ? max(gemm.blocks_k - C::kInTurn, 0) : -1;
      const int passes_at = last && consumer + 1 < C::kConsumers ? gemm.blocks_k - 1 : -1;

      // Main loop.
      float sums[C::kBlocks][kTileM / 2];  // [64, tile m] of each
      with_product(P{}, gemm, gemm.epilogue.bias_gradient.data != nullptr && col == 0, [&](auto product) {
        float row_sums[C::kBlocks][4];  // [64, 8] of each
        int previous = 0;
        for (int block = 0; block < gemm.blocks_k; ++block, at.advance()) {
          if (block == waits_at) wait_for_turn(consumer - 1);
          mbarrier_wait(shared.full[at.stage], at.parity);
          multiply(product, shared.stages[at.stage], shared.ones, consumer * C::kBlocks, block > 0, sums, row_sums);
          if (block == passes_at) pass_turn(consumer);
          wgmma_wait<1>();
          if (block > 0) release(previous);
          previous = at.stage;
        }
        wgmma_wait<0>();
        release(previous);
        if constexpr (product.kSumsRows) {
          for (int i = 0; i < C::kBlocks; ++i) finish_bias_gradient(gemm.epilogue, row + i * kBox, row_sums[i]);
        }
      });

      // Epilogue.
      if constexpr (std::is_same_v<P, AnyProduct>) {
        epilogue.finish(sums);
      } else if constexpr (C::kStrips == 1) {
        epilogue.template store_whole<typename P::T>(sums);
      } else {
        epilogue.template store<typename P::T>(sums);
      }
    }
    wait_boxes_read<0>();
  }
}

}  // namespace

void launch_persistent_cooperative(CudaQueue& queue, const GemmArgs& args, const GemmPlan& plan) {
  with_tile<kPersistentCooperativeTiles>("persistent_cooperative", plan.tile, [&]<int kM, int kN>() {
    const WarpgroupGemm gemm = warpgroup_gemm(args, plan);
    const auto launch_product = [&]<class P>(P) {
      using C = Config<kM, kN, !std::is_same_v<P, AnyProduct>>;
      launch_clusters(queue, "persistent_cooperative", persistent_cooperative<C, P>, gemm, plan.blocks, C::kThreads,
                      sizeof(typename C::SharedStorage));
    };
    if (is_cooperative_gradient(problem_of(args), plan.tile)) {
      with_gradient_product(gemm, launch_product);
    } else {
      launch_product(AnyProduct{});
    }
  });
}

}  // namespace tilewave
