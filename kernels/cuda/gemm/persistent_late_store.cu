// Adds to persistent_cooperative, for 16-bit outputs without an epilogue: a tile's sums are packed into half their registers and
// stored piece by piece under the next tile's products, straight from registers, so that the tensor cores pause for the packing
// alone and shared memory, which the products fill to its bandwidth, sees nothing of D. A kernel for each type and majors: a
// loop that keeps sums and packed sums has no register to spare.
#include "kernels/cuda/gemm/packed_sums.h"
#include "kernels/cuda/gemm/warpgroup_gemm.h"
#include "kernels/gemm/rows/persistent_late_store.h"

namespace tilewave {
namespace {

template <int kM, int kN>
struct Config {
  static constexpr Tile kTile = {kM, kN};
  static constexpr int kStages = late_store_stages(kTile), kConsumers = kLateStoreConsumers;
  static constexpr int kThreads = (1 + kConsumers) * kWarpgroup;
  static constexpr int kProducerRegisters = 40, kConsumerRegisters = 232;

  struct SharedStorage {
    OperandStage<kN, kM> stages[kStages];
    alignas(1024) Mbarrier full[kStages];
    Mbarrier empty[kStages];
  };
  static_assert(sizeof(SharedStorage) == persistent_late_store_shared_bytes(kTile), "the plan knows what a block needs");
  static_assert(kN == kConsumers * kBox, "a consumer takes 64 rows");
};

// kWhole: rows of D begin and end on 16 bytes. The stores stand in the main loop, and those of single elements would crowd it.
template <class C, class P, bool kWhole>
__global__ void __launch_bounds__(C::kThreads, 1) persistent_late_store(const __grid_constant__ WarpgroupGemm gemm) {
  extern __shared__ __align__(1024) std::byte storage[];
  auto& shared = *reinterpret_cast<typename C::SharedStorage*>(storage);
  constexpr int kTileM = static_cast<int>(C::kTile.m), kTileN = static_cast<int>(C::kTile.n);

  // Prologue.
  const int first = static_cast<int>(blockIdx.x), step = static_cast<int>(gridDim.x);
  if (threadIdx.x == 0) {
    prefetch_map(gemm.rows);
    prefetch_map(gemm.cols);
    mbarrier_init(shared.full, 1);
    mbarrier_init(shared.empty, C::kConsumers);
    mbarrier_init_fence();
  }
  __syncthreads();
  wait_for_previous_kernel();

  RingPosition<C::kStages> at;
  if (threadIdx.x < kWarpgroup) {  // The producer.
    give_up_registers<C::kProducerRegisters>();
    if (threadIdx.x == 0) {
      for (int index = first; index < gemm.raster.tiles; index += step) {
        const TileAt tile = gemm.raster(index);
        for (int block = 0; block < gemm.blocks_k; ++block, at.advance()) {
          mbarrier_wait(shared.empty[at.stage], at.parity ^ 1);
          load_stage(shared.stages[at.stage], gemm, shared.full[at.stage], block * kBox, tile.n * kTileN, tile.m * kTileM);
        }
      }
    }
  } else {  // A consumer.
    take_registers<C::kConsumerRegisters>();
    const int consumer = static_cast<int>(threadIdx.x) / kWarpgroup - 1, warp = static_cast<int>(threadIdx.x) / 32 % 4;
    const bool leads = threadIdx.x % kWarpgroup == 0;
    const PackedTarget to = {
        .data = gemm.epilogue.d.data, .ld = gemm.epilogue.d.ld, .rows = gemm.epilogue.rows, .own = {.end = gemm.epilogue.cols}};
    PackedSums<kTileM> packed;
    for (int index = first; index < gemm.raster.tiles; index += step) {
      // Main loop, and the stores of the tile before.
      float sums[1][kTileM / 2];  // [64, tile m]
      float row_sums[1][4];
      int previous = 0;
      for (int block = 0; block < gemm.blocks_k; ++block, at.advance()) {
        mbarrier_wait(shared.full[at.stage], at.parity);
        multiply(P{}, shared.stages[at.stage], Ones{}, consumer, block > 0, sums, row_sums);
        if (packed.waiting && block < packed.kPieces) packed.template store<kWhole>(to.ld, block);
        wgmma_wait<1>();
        if (leads && block > 0) mbarrier_arrive(shared.empty[previous]);
        previous = at.stage;
      }
      if (packed.waiting) {
        for (int piece = gemm.blocks_k; piece < packed.kPieces; ++piece) packed.template store<kWhole>(to.ld, piece);
      }
      const TileAt tile = gemm.raster(index);
      packed.aim(to, tile.n * kTileN + consumer * kBox + warp * kStripRows, tile.m * kTileM);
      wgmma_wait<0>();
      if (leads) mbarrier_arrive(shared.empty[previous]);

      // Epilogue.
      packed.take(typename P::T{}, sums[0]);
    }
    for (int piece = 0; piece < packed.kPieces; ++piece) packed.template store<kWhole>(to.ld, piece);
  }
}

}  // namespace

void launch_persistent_late_store(CudaQueue& queue, const GemmArgs& args, const GemmPlan& plan) {
  const WarpgroupGemm gemm = warpgroup_gemm(args, plan);
  const auto launch = [&]<int kM, int kN>() {
    if (plan.tile != Tile{kM, kN}) return;
    using C = Config<kM, kN>;
    with_product_of(gemm, [&]<class P>(P) {
      auto* const kernel =
          gemm.epilogue.d.mapped_cols == gemm.epilogue.cols ? persistent_late_store<C, P, true> : persistent_late_store<C, P, false>;
      launch_clusters(queue, "persistent_late_store", kernel, gemm, plan.blocks, C::kThreads, sizeof(typename C::SharedStorage));
    });
  };
  launch.template operator()<256, 128>();
  launch.template operator()<192, 128>();
  launch.template operator()<128, 128>();
}

}  // namespace tilewave
