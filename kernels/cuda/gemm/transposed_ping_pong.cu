// Adds to persistent_ping_pong turned tiles of 128 x 160 and 128 x 192: wide enough that one consumer's products take about as long as L2
// takes to bring their operands, where those of 128 x 128 wait for it, and still narrow enough for a thread's registers. So the tensor
// cores go from one tile's products to the next one's, and every epilogue but a block's last lies under the other consumer's, side input
// and all: another warp asks for that, as far ahead as there are slots for it, and one more sends what has been computed.
#include "kernels/cuda/gemm/transposed_parts.h"
#include "kernels/gemm/rows/transposed_ping_pong.h"
#include "kernels/gemm/with_tile.h"

namespace tilewave {
namespace {

template <int kM, int kN, TurnedForm kWhich>
struct Config {
  static constexpr Tile kTile = {kM, kN};
  static constexpr int kTileM = kM, kTileN = kN, kBlocks = kM / kBox;
  static constexpr TurnedForm kForm = kWhich;
  static constexpr int kStages = transposed_ping_pong_stages(kTile, kForm), kConsumers = 2;
  static constexpr int kThreads = (1 + kConsumers) * kWarpgroup;
  static constexpr bool kFillsSlots = fills_slots(kForm);  // in turn, or each consumer has one of its own
  static constexpr int kProducerRegisters = kFillsSlots ? 24 : 40, kConsumerRegisters = kFillsSlots ? 240 : 232;
  static constexpr int kColumnsAtOnce = static_cast<int>(columns_at_once(kTile, kForm));
  static constexpr int kBuffersOfSlot = kForm == TurnedForm::sided ? 1 : 2, kSlots = buffers_of_block(kTile, kForm) / kBuffersOfSlot;
  static constexpr int kParts = kBlocks * kTileN / kColumnsAtOnce;  // of a tile
  static_assert(kFillsSlots || kSlots == kConsumers);

  struct SharedStorage {
    TransposedStage<kTileM, kTileN> stages[kStages];
    alignas(1024) std::byte slots[kSlots][kBuffersOfSlot][kColumnsAtOnce * 128];  // through which D goes out
    alignas(1024) Mbarrier full[kStages];
    Mbarrier empty[kStages];
    Mbarrier turn[kConsumers], turn_at_slots[kConsumers];
    SlotBarriers<kSlots> of_slots;
  };
  using Epilogue = std::conditional_t<kFillsSlots, EpilogueInParts<Config>, TransposedEpilogue<Config, kForm == TurnedForm::plain>>;
  static_assert(sizeof(SharedStorage) == transposed_ping_pong_bytes(kTile, kForm), "the plan knows what a block needs");
  static_assert(kForm != TurnedForm::any || sizeof(SharedStorage::slots[0]) >= 16 << 10, "elements go out by way of 16 KB");
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

// fn(position in the ring of slots, m, n) for each part of each of the block's tiles, where it lies in D.
template <class C, class Fn>
__device__ __forceinline__ void for_each_part(const WarpgroupGemm& gemm, Fn&& fn) {
  constexpr int kPartsOfBlock = C::kParts / C::kBlocks;
  RingPosition<C::kSlots> at;
  for (int turn = first_turn(gemm); turn < gemm.raster.tiles; turn += gemm.clusters) {
    const TileAt tile = own_turned_tile(gemm, turn);
#pragma unroll 1
    for (int part = 0; part < C::kParts; ++part, at.advance())
      fn(at, tile.m * C::kTileM + part / kPartsOfBlock * kBox, tile.n * C::kTileN + part % kPartsOfBlock * C::kColumnsAtOnce);
  }
}

// The side inputs, into the slots from where the results leave, as soon as those have.
template <class C>
__device__ __forceinline__ void load_sides(typename C::SharedStorage& shared, const WarpgroupGemm& gemm) {
  for_each_part<C>(gemm, [&](const RingPosition<C::kSlots>& at, int m, int n) {
    Mbarrier& full = shared.of_slots.side_full[at.stage];
    mbarrier_wait(shared.of_slots.empty[at.stage], at.parity ^ 1);
    mbarrier_arrive_expecting(full, C::kColumnsAtOnce * 128);
    load_box(shared.slots[at.stage][0], gemm.epilogue.side_map, full, m, n);
  });
}

// The results, and an activation's inputs where they are stored, as soon as they are put down.
template <class C>
__device__ __forceinline__ void send_parts(typename C::SharedStorage& shared, const WarpgroupGemm& gemm) {
  const WarpgroupEpilogue& e = gemm.epilogue;
  for_each_part<C>(gemm, [&](const RingPosition<C::kSlots>& at, int m, int n) {
    mbarrier_wait(shared.of_slots.done[at.stage], at.parity);
    store_box(e.d_map, shared.slots[at.stage][0], m, n);
    if constexpr (C::kForm == TurnedForm::activated) {
      if (e.saved_input.data != nullptr) store_box(e.saved_input_map, shared.slots[at.stage][1], m, n);
    }
    commit_boxes();
    wait_boxes_read<0>();
    mbarrier_arrive(shared.of_slots.empty[at.stage]);
  });
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
    mbarrier_init(shared.turn_at_slots, kWarpgroup / 32);
    mbarrier_init(shared.of_slots.side_full, 1);
    mbarrier_init(shared.of_slots.done, kWarpgroup / 32);
    mbarrier_init(shared.of_slots.empty, 1);
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
    } else if constexpr (C::kFillsSlots) {
      const bool loads = C::kForm == TurnedForm::sided && warp == 1, sends = warp == 2;
      if ((loads || sends) && elect_lane()) {
        wait_for_previous_kernel();
        if (loads) load_sides<C>(shared, gemm);
        if (sends) send_parts<C>(shared, gemm);
      }
    }
  } else {  // A consumer, of every second tile.
    take_registers<C::kConsumerRegisters>();
    wait_for_previous_kernel();
    const int consumer = warpgroup_rank() - 1, thread = static_cast<int>(threadIdx.x) % kWarpgroup;
    const auto release = [&](int stage) {  // to every producer that writes here
      if (thread < gemm.cluster) mbarrier_arrive_at(shared.empty[stage], thread);
    };
    if (consumer == 1) at.advance(gemm.blocks_k);
    int round = consumer * (C::kParts / C::kSlots);  // of the slots, with which a tile begins
    unsigned turn = consumer == 0 ? 1 : 0;           // the first to begin waits for nobody
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
      if constexpr (C::kFillsSlots) {
        mbarrier_wait(shared.turn_at_slots[consumer], turn);
        if constexpr (C::kForm == TurnedForm::activated) {
          epilogue.finish_activated(typename P::T{}, shared.slots, shared.of_slots, round, sums);
        } else {
          epilogue.finish_sided(typename P::T{}, shared.slots, shared.of_slots, round, sums);
        }
        if (elect_lane()) mbarrier_arrive(shared.turn_at_slots[1 - consumer]);
        round += C::kConsumers * (C::kParts / C::kSlots);
      } else if constexpr (C::kForm == TurnedForm::plain) {
        epilogue.template finish_in_parts<C::kColumnsAtOnce>(typename P::T{}, shared.slots[consumer], sums);
      } else {
        const bool whole = min(m + C::kTileM, e.cols) <= e.d.mapped_cols;
        if (e.through_strips && !e.has_side && (whole || (e.activation == Activation::none && e.saved_input.data == nullptr))) {
          epilogue.template finish_in_parts<C::kColumnsAtOnce>(typename P::T{}, shared.slots[consumer], sums);
          if (!whole) epilogue.store_last_columns(sums);
        } else {
          wait_boxes_read<0>();
          epilogue.finish_elements(shared.slots[consumer][0], sums);
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
  with_tile<kTransposedPingPongTiles>("transposed_ping_pong", plan.tile, [&]<int kM, int kN>() {
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
  });
}

}  // namespace tilewave
