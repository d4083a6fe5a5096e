// Adds to persistent_ping_pong turned tiles of 128 x 160 and 128 x 192: wide enough that one consumer's products take about as long as L2
// takes to bring their operands, where those of 128 x 128 wait for it, and still narrow enough for a thread's registers. So the tensor
// cores go from one tile's products to the next one's, and every epilogue but a block's last lies under the other consumer's, side input
// and all: another warp asks for that, as far ahead as there are buffers.
#include "kernels/cuda/gemm/transposed_parts.h"
#include "kernels/gemm/rows/transposed_ping_pong.h"

namespace tilewave {
namespace {

template <int kM, int kN, TurnedForm kWhich>
struct Config {
  static constexpr Tile kTile = {kM, kN};
  static constexpr int kTileM = kM, kTileN = kN, kBlocks = kM / kBox;
  static constexpr TurnedForm kForm = kWhich;
  static constexpr int kStages = transposed_ping_pong_stages(kTile, kForm), kConsumers = 2;
  static constexpr int kThreads = (1 + kConsumers) * kWarpgroup;
  static constexpr bool kInTurn = takes_turns_at_buffers(kForm);  // or each has buffers of its own
  static constexpr int kProducerRegisters = kInTurn ? 24 : 40, kConsumerRegisters = kInTurn ? 240 : 232;
  static constexpr int kColumnsAtOnce = static_cast<int>(columns_at_once(kTile, kForm));
  static constexpr int kBuffers = buffers_of_block(kTile, kForm) / (kInTurn ? 1 : kConsumers);
  static constexpr int kParts = kBlocks * kTileN / kColumnsAtOnce;  // of a tile

  struct SharedStorage {
    TransposedStage<kTileM, kTileN> stages[kStages];
    alignas(1024) std::byte buffers[kInTurn ? 1 : kConsumers][kBuffers][kColumnsAtOnce * 128];  // through which D goes out
    alignas(1024) Mbarrier full[kStages];
    Mbarrier empty[kStages];
    Mbarrier turn[kConsumers], turn_at_buffers[kConsumers];
    Mbarrier side_full[kBuffers], side_empty[kBuffers];
  };
  using Epilogue = std::conditional_t<kInTurn, EpilogueInParts<Config>, TransposedEpilogue<Config, kForm == TurnedForm::plain>>;
  static_assert(sizeof(SharedStorage) == transposed_ping_pong_bytes(kTile, kForm), "the plan knows what a block needs");
  static_assert(kForm != TurnedForm::any || kColumnsAtOnce * 128 * kBuffers >= 16 << 10, "elements go out by way of 16 KB");
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

// The side inputs of the block's tiles, into the buffers from where the results leave, as soon as those have.
template <class C>
__device__ __forceinline__ void load_sides(typename C::SharedStorage& shared, const WarpgroupGemm& gemm) {
  constexpr int kBytes = C::kColumnsAtOnce * 128;
  RingPosition<C::kBuffers> at;
  for (int turn = first_turn(gemm); turn < gemm.raster.tiles; turn += gemm.clusters) {
    const TileAt tile = own_turned_tile(gemm, turn);
    for (int part = 0; part < C::kParts; ++part, at.advance()) {
      constexpr int kPartsOfBlock = C::kParts / C::kBlocks;
      const int m = tile.m * C::kTileM + part / kPartsOfBlock * kBox, n = tile.n * C::kTileN + part % kPartsOfBlock * C::kColumnsAtOnce;
      mbarrier_wait(shared.side_empty[at.stage], at.parity ^ 1);
      mbarrier_arrive_expecting(shared.side_full[at.stage], kBytes);
      load_box(shared.buffers[0][at.stage], gemm.epilogue.side_map, shared.side_full[at.stage], m, n);
    }
  }
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
    mbarrier_init(shared.turn_at_buffers, 1);
    mbarrier_init(shared.side_full, 1);
    mbarrier_init(shared.side_empty, 1);
    mbarrier_init_fence();
  }
  bring_first_blocks<C::kThreads>(gemm);
  __syncthreads();
  cluster_meet();

  RingPosition<C::kStages> at;
  if (threadIdx.x < kWarpgroup) {  // The producer.
    give_up_registers<C::kProducerRegisters>();
    const int rank = of_warp(static_cast<int>(cluster_rank()));
    const int warp = warp_rank();
    if (warp == 0 && elect_lane()) {
      WaitOnce wait_for_operands;
      for (int turn = first_turn(gemm); turn < gemm.raster.tiles; turn += gemm.clusters) {
        const TileAt tile = own_turned_tile(gemm, turn);
        for (int block = 0; block < gemm.blocks_k; ++block, at.advance()) {
          mbarrier_wait(shared.empty[at.stage], at.parity ^ 1);
          wait_for_operands();
          load_turned_stage<P>(shared.stages[at.stage], gemm, shared.full[at.stage], block * kBox, tile.m * C::kTileM, tile.n * C::kTileN,
                               rank);
        }
      }
      wait_for_readers(gemm.cluster, shared.empty, at);
    } else if (C::kForm == TurnedForm::sided && warp == 1 && elect_lane()) {
      wait_for_previous_kernel();
      load_sides<C>(shared, gemm);
    }
  } else {  // A consumer, of every second tile.
    take_registers<C::kConsumerRegisters>();
    wait_for_previous_kernel();
    const int consumer = warpgroup_rank() - 1, thread = static_cast<int>(threadIdx.x) % kWarpgroup;
    const auto release = [&](int stage) {  // to every producer that writes here
      if (thread < gemm.cluster) mbarrier_arrive_at(shared.empty[stage], thread);
    };
    RingPosition<C::kBuffers> side_at;
    if (consumer == 1) {
      at.advance(gemm.blocks_k);
      side_at.advance(std::int64_t{C::kParts});
    }
    unsigned turn = consumer == 0 ? 1 : 0;  // the first to begin waits for nobody
    for (int index = first_turn(gemm) + consumer * gemm.clusters; index < gemm.raster.tiles; index += C::kConsumers * gemm.clusters) {
      const TileAt tile = own_turned_tile(gemm, index);
      const int m = tile.m * C::kTileM, n = tile.n * C::kTileN;
      const typename C::Epilogue epilogue(e, m, n, consumer);  // its bias comes meanwhile

      // Main loop.
      mbarrier_wait(shared.turn[consumer], turn);
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
      auto& buffers = shared.buffers[C::kInTurn ? 0 : consumer];
      if constexpr (C::kInTurn) {
        mbarrier_wait(shared.turn_at_buffers[consumer], turn);
        if constexpr (C::kForm == TurnedForm::activated) {
          epilogue.finish_activated(typename P::T{}, buffers, sums);
        } else {
          epilogue.finish_sided(typename P::T{}, buffers, shared.side_full, shared.side_empty, side_at, sums);
          side_at.advance(std::int64_t{C::kParts});
        }
        sync_warpgroup(consumer);
        if (thread == 0) mbarrier_arrive(shared.turn_at_buffers[1 - consumer]);
      } else if constexpr (C::kForm == TurnedForm::plain) {
        epilogue.template finish_in_parts<C::kColumnsAtOnce>(typename P::T{}, buffers, sums);
      } else {
        const bool whole = min(m + C::kTileM, e.cols) <= e.d.mapped_cols;
        if (e.through_strips && !e.has_side && (whole || (e.activation == Activation::none && e.saved_input.data == nullptr))) {
          epilogue.template finish_in_parts<C::kColumnsAtOnce>(typename P::T{}, buffers, sums);
          if (!whole) epilogue.store_last_columns(sums);
        } else {
          wait_boxes_read<0>();
          epilogue.finish_elements(buffers[0], sums);
        }
      }
      turn ^= 1;
    }
    wait_boxes_read<0>();
  }
}

}  // namespace

void launch_transposed_ping_pong(CudaQueue& queue, const GemmArgs& args, const GemmPlan& plan) {
  WarpgroupGemm gemm = transposed_gemm(args, plan);
  gemm.cols = make_tensor_map(args.b, static_cast<int>(plan.tile.n) / plan.cluster);
  gemm.raster = Raster::of(static_cast<int>(ceil_div(plan.tiling.tiles_m, plan.cluster)), static_cast<int>(plan.tiling.tiles_n),
                           static_cast<int>(ceil_div(band_columns(problem_of(args).k), plan.tile.m * plan.cluster)));
  const TileAt reach = gemm.raster.reach(gemm.clusters);
  gemm.first_blocks[0] = FirstBlocks::of(args.a, gemm.rows_fastest, reach.m * plan.cluster * plan.tile.m);
  gemm.first_blocks[1] = FirstBlocks::of(args.b, gemm.cols_fastest, reach.n * plan.tile.n);
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
    const auto form = turned_form(problem_of(args));
    const auto columns = static_cast<int>(columns_at_once(plan.tile, form));
    const auto map_of = [columns](const ConstMatrixView& like_d) { return like_d ? make_tensor_map(like_d, columns) : CUtensorMap{}; };
    switch (form) {
      case TurnedForm::plain:
        gemm.epilogue.d_map = make_tensor_map(args.d, kStripRows);  // a bias of any type takes it
        return launch_form.template operator()<Config<kM, kN, TurnedForm::plain>>();
      case TurnedForm::activated:
        gemm.epilogue.d_map = map_of(args.d);
        gemm.epilogue.saved_input_map = map_of(args.saved_input);
        return launch_form.template operator()<Config<kM, kN, TurnedForm::activated>>();
      case TurnedForm::sided:
        gemm.epilogue.d_map = map_of(args.d);
        gemm.epilogue.side_map = map_of(args.derivative_of ? args.derivative_of : args.residual ? args.residual : args.d);
        return launch_form.template operator()<Config<kM, kN, TurnedForm::sided>>();
      case TurnedForm::any:
        return launch_form.template operator()<Config<kM, kN, TurnedForm::any>>();
    }
  };
  launch_tile.template operator()<128, 160>();
  launch_tile.template operator()<128, 192>();
}

}  // namespace tilewave
