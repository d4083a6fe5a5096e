// Adds to persistent_ping_pong turned tiles of 128 x 160 and 128 x 192: wide enough that one consumer's products take about as long as L2
// takes to bring their operands, where those of 128 x 128 wait for it, and still narrow enough for a thread's registers. So the tensor
// cores go from one tile's products to the next one's, and every epilogue but a block's last lies under the other consumer's.
#include "kernels/cuda/gemm/transposed.h"
#include "kernels/gemm/rows/transposed_ping_pong.h"

namespace tilewave {
namespace {

// kIsPlain: what is_plain says.
template <int kM, int kN, bool kIsPlain>
struct Config {
  static constexpr Tile kTile = {kM, kN};
  static constexpr int kTileM = kM, kTileN = kN, kBlocks = kM / kBox;
  static constexpr bool kPlain = kIsPlain;
  static constexpr int kStages = transposed_ping_pong_stages(kTile, kPlain), kConsumers = 2;
  static constexpr int kThreads = (1 + kConsumers) * kWarpgroup;
  static constexpr int kProducerRegisters = 40, kConsumerRegisters = 232;
  static constexpr int kColumnsAtOnce = static_cast<int>(columns_at_once(kTile, kPlain)), kBuffers = 2;

  struct SharedStorage {
    TransposedStage<kTileM, kTileN> stages[kStages];
    alignas(1024) std::byte buffers[kConsumers][kBuffers][kColumnsAtOnce * 128];  // through which D goes out
    alignas(1024) Mbarrier full[kStages];
    Mbarrier empty[kStages];
    Mbarrier turn[kConsumers];
  };
  static_assert(sizeof(SharedStorage) == transposed_ping_pong_bytes(kTile, kPlain), "the plan knows what a block needs");
  static_assert(kPlain || kColumnsAtOnce * 128 * kBuffers >= 16 << 10, "elements go out by way of 16 KB");
};

// The blocks of a cluster take tiles side by side along M.
__device__ __forceinline__ TileAt own_turned_tile(const WarpgroupGemm& gemm, int turn) {
  const TileAt tile = gemm.raster(turn);
  return {.m = tile.m * gemm.cluster + static_cast<int>(cluster_rank()), .n = tile.n};
}

// Columns that lie along K come in one box, or where a pair of blocks shares them in a half by each, for both.
template <class P, int kM, int kN>
__device__ __forceinline__ void load_turned_stage(TransposedStage<kM, kN>& stage, const WarpgroupGemm& gemm, Mbarrier& full, int k, int m,
                                                  int n, int rank) {
  mbarrier_arrive_expecting(full, stage.kBytes);
  for (int box = 0; box < stage.kRowBoxes; ++box) load_operand_box(stage.rows[box], gemm.rows, P::kRows, full, k, m + box * kBox);
  std::byte* const cols = stage.cols[0];
  if (gemm.cluster == 1) return load_box(cols, gemm.cols, full, k, n);
  const int first = rank * (kN / 2);
  load_box_multicast(cols + first * 128, gemm.cols, full, k, n + first, 0b11);
}

template <class C, class P>
__global__ void __launch_bounds__(C::kThreads, 1) transposed_ping_pong(const __grid_constant__ WarpgroupGemm gemm) {
  extern __shared__ __align__(1024) std::byte storage[];
  auto& shared = storage_in<typename C::SharedStorage>(storage);
  const WarpgroupEpilogue& e = gemm.epilogue;

  // Prologue.
  if (threadIdx.x == 0) {
    prefetch_map(gemm.rows);
    prefetch_map(gemm.cols);
    mbarrier_init(shared.full, 1);
    mbarrier_init(shared.empty, gemm.cluster);
    mbarrier_init(shared.turn, 1);
    mbarrier_init_fence();
  }
  __syncthreads();
  cluster_meet();
  wait_for_previous_kernel();

  RingPosition<C::kStages> at;
  if (threadIdx.x < kWarpgroup) {  // The producer.
    give_up_registers<C::kProducerRegisters>();
    const int rank = of_warp(static_cast<int>(cluster_rank()));
    if (elect_lane_of(0)) {
      for (int turn = first_turn(gemm); turn < gemm.raster.tiles; turn += gemm.clusters) {
        const TileAt tile = own_turned_tile(gemm, turn);
        for (int block = 0; block < gemm.blocks_k; ++block, at.advance()) {
          mbarrier_wait(shared.empty[at.stage], at.parity ^ 1);
          load_turned_stage<P>(shared.stages[at.stage], gemm, shared.full[at.stage], block * kBox, tile.m * C::kTileM, tile.n * C::kTileN,
                               rank);
        }
      }
    }
  } else {  // A consumer, of every second tile.
    take_registers<C::kConsumerRegisters>();
    const int consumer = warpgroup_rank() - 1, thread = static_cast<int>(threadIdx.x) % kWarpgroup;
    const auto release = [&](int stage) {  // to every producer that writes here
      if (thread < gemm.cluster) mbarrier_arrive_at(shared.empty[stage], thread);
    };
    if (consumer == 1) at.advance(gemm.blocks_k);
    unsigned turn = consumer == 0 ? 1 : 0;  // the first to begin waits for nobody
    for (int index = first_turn(gemm) + consumer * gemm.clusters; index < gemm.raster.tiles; index += C::kConsumers * gemm.clusters) {
      const TileAt tile = own_turned_tile(gemm, index);
      const int m = tile.m * C::kTileM, n = tile.n * C::kTileN;

      // Main loop.
      mbarrier_wait(shared.turn[consumer], turn);
      turn ^= 1;
      float sums[C::kBlocks][C::kTileN / 2];  // [64, tile n] of each
      int previous = 0;
      for (int block = 0; block < gemm.blocks_k; ++block, at.advance()) {
        mbarrier_wait(shared.full[at.stage], at.parity);
        multiply(P{}, shared.stages[at.stage], 0, block > 0, sums);
        wgmma_wait<1>();
        if (block > 0) release(previous);
        previous = at.stage;
      }
      if (thread == 0) mbarrier_arrive(shared.turn[1 - consumer]);
      wgmma_wait<0>();
      release(previous);
      at.advance(gemm.blocks_k);  // the partner's

      // Epilogue.
      const TransposedEpilogue<C, C::kPlain> epilogue(e, m, n, consumer);
      auto& buffers = shared.buffers[consumer];
      if constexpr (C::kPlain) {
        epilogue.template finish_in_parts<C::kColumnsAtOnce>(typename P::T{}, buffers, sums);
      } else {
        const bool whole = min(m + C::kTileM, e.cols) <= e.d.mapped_cols;
        if (e.through_strips && (whole || (e.activation == Activation::none && e.saved_input.data == nullptr))) {
          epilogue.template finish_in_parts<C::kColumnsAtOnce>(typename P::T{}, buffers, sums);
          if (!whole) epilogue.store_last_columns(sums);
        } else {
          wait_boxes_read<0>();
          epilogue.finish_elements(buffers[0], sums);
        }
      }
    }
    wait_boxes_read<0>();
  }
  if (gemm.cluster > 1) cluster_sync();  // nobody leaves while another may still load into it or arrive at its barriers
}

}  // namespace

void launch_transposed_ping_pong(CudaQueue& queue, const GemmArgs& args, const GemmPlan& plan) {
  WarpgroupGemm gemm = transposed_gemm(args, plan);
  gemm.cols = make_tensor_map(args.b, static_cast<int>(plan.tile.n) / plan.cluster);
  gemm.raster = Raster::of(static_cast<int>(ceil_div(plan.tiling.tiles_m, plan.cluster)), static_cast<int>(plan.tiling.tiles_n),
                           static_cast<int>(ceil_div(band_columns(problem_of(args).k), plan.tile.m * plan.cluster)));
  const auto launch_form = [&]<class C>() {
    with_product_of(gemm, [&]<class P>(P) {
      if constexpr (P::kCols == Fastest::k) {
        launch_clusters(queue, "transposed_ping_pong", transposed_ping_pong<C, P>, gemm, plan.blocks, C::kThreads,
                        sizeof(typename C::SharedStorage));
      }
    });
  };
  const auto launch_tile = [&]<int kM, int kN>() {
    if (plan.tile != Tile{kM, kN}) return;
    if (is_plain(problem_of(args))) {
      gemm.epilogue.d_map = make_tensor_map(args.d, kStripRows);  // a bias of any type takes it
      return launch_form.template operator()<Config<kM, kN, true>>();
    }
    launch_form.template operator()<Config<kM, kN, false>>();
  };
  launch_tile.template operator()<128, 160>();
  launch_tile.template operator()<128, 192>();
}

}  // namespace tilewave
