// Adds to persistent_ping_pong swap-AB tiles of 128 x 160 and 128 x 192: wide enough that one consumer's products take about as long as L2
// takes to bring their operands, where those of 128 x 128 wait for it, and still narrow enough for a thread's registers. So the tensor
// cores go from one tile's products to the next one's, and every epilogue but a block's last lies under the other consumer's, side input
// and all: another warp asks for that, as far ahead as there are slots for it, and one more sends what has been computed.
#include "kernels/cuda/gemm/sm90/schedule.h"
#include "kernels/cuda/gemm/sm90/transposed_parts.h"
#include "kernels/gemm/facts/with_tile.h"
#include "kernels/gemm/sm90/persistent_ping_pong_swap_ab.h"

namespace tilewave {
namespace {

template <int kM, int kN, SwapAbForm kWhich>
struct Config : Cta<kM, kN, 2, has_store_warp(kWhich) ? 24 : 40, has_store_warp(kWhich) ? 240 : 232> {
  static constexpr Tile kTile = {kM, kN};
  static constexpr int kMmaTiles = kM / kBox;
  static constexpr SwapAbForm kForm = kWhich;
  static constexpr int kStages = persistent_ping_pong_swap_ab_stages(kTile, kForm);
  static constexpr bool kHasStoreWarp = has_store_warp(kForm);  // in turn, or each consumer has one of its own
  static constexpr int kColumnsAtOnce = static_cast<int>(columns_at_once(kTile, kForm));
  static constexpr int kOutputsPerBuffer = kForm == SwapAbForm::sided ? 1 : 2,
                       kStagingBuffers = buffers_of_block(kTile, kForm) / kOutputsPerBuffer;
  static constexpr int kSubtiles = kMmaTiles * kN / kColumnsAtOnce;  // of a tile
  static constexpr int kConsumers = 2;
  static_assert(kHasStoreWarp || kStagingBuffers == kConsumers);

  struct SharedStorage {
    SwapAbStage<kM, kN> stages[kStages];
    alignas(1024) std::byte staging[kStagingBuffers][kOutputsPerBuffer][kColumnsAtOnce * 128];  // through which D goes out
    alignas(1024) Ring<kStages> ring;
    PingPong::SharedStorage schedule;
    Mbarrier staging_order[kConsumers];
    StagingBarriers<kStagingBuffers> staging_barriers;
  };
  using Epilogue = std::conditional_t<kHasStoreWarp, SubtileEpilogue<Config>, SwapAbEpilogue<Config, kForm == SwapAbForm::plain>>;
  static_assert(sizeof(SharedStorage) == persistent_ping_pong_swap_ab_bytes(kTile, kForm), "the plan knows what a block needs");
  static_assert(kForm != SwapAbForm::any || sizeof(SharedStorage::staging[0]) >= 16 << 10, "elements go out by way of 16 KB");
};

// The blocks of a cluster take tiles side by side along M.
__device__ __forceinline__ TileAt own_swap_ab_tile(const WarpgroupGemm& gemm, int tile_index) {
  const TileAt tile = gemm.raster(tile_index);
  return {.m = tile.m * gemm.cluster + static_cast<int>(cluster_rank()), .n = tile.n};
}

// Columns that lie along K come in one box, or where a pair of blocks shares them in a half by each, for both.
template <class P, int kM, int kN>
__device__ __forceinline__ void load_swap_ab_stage(SwapAbStage<kM, kN>& stage, const WarpgroupGemm& gemm, Mbarrier& full, int k, int m,
                                                   int n, int rank) {
  mbarrier_arrive_expecting(full, stage.kBytes);
  load_boxes(stage.rows, gemm.rows, P::kRows, full, k, m);
  std::byte* const cols = stage.cols[0];
  if (gemm.cluster == 1) return tma_load(cols, gemm.cols, full, k, n);
  const int first = rank * (kN / 2);
  tma_load_multicast(cols + first * 128, gemm.cols, full, k, n + first, 0b11);
}

// fn(position in the ring of slots, m, n) for each part of each of the block's tiles, where it lies in D.
template <class C, class Fn>
__device__ __forceinline__ void for_each_stored_subtile(const WarpgroupGemm& gemm, Fn&& fn) {
  constexpr int kSubtilesPerMmaTile = C::kSubtiles / C::kMmaTiles;
  RingPosition<C::kStagingBuffers> at;
  for (int tile_index = first_tile_index(gemm); tile_index < gemm.raster.tiles; tile_index += gemm.clusters) {
    const TileAt tile = own_swap_ab_tile(gemm, tile_index);
#pragma unroll 1
    for (int subtile = 0; subtile < C::kSubtiles; ++subtile, at.advance())
      fn(at, tile.m * C::kTileM + subtile / kSubtilesPerMmaTile * kBox,
         tile.n * C::kTileN + subtile % kSubtilesPerMmaTile * C::kColumnsAtOnce);
  }
}

// The side inputs, into the slots from where the results leave, as soon as those have.
template <class C>
__device__ __forceinline__ void load_sides(typename C::SharedStorage& shared, const WarpgroupGemm& gemm) {
  for_each_stored_subtile<C>(gemm, [&](const RingPosition<C::kStagingBuffers>& at, int m, int n) {
    Mbarrier& full = shared.staging_barriers.side_full[at.stage];
    mbarrier_wait(shared.staging_barriers.empty[at.stage], at.parity ^ 1);
    mbarrier_arrive_expecting(full, C::kColumnsAtOnce * 128);
    tma_load(shared.staging[at.stage][0], gemm.epilogue.side_map, full, m, n);
  });
}

// The results, and an activation's inputs where they are stored, as soon as they are put down.
template <class C>
__device__ __forceinline__ void store_subtiles(typename C::SharedStorage& shared, const WarpgroupGemm& gemm) {
  const WarpgroupEpilogue& e = gemm.epilogue;
  for_each_stored_subtile<C>(gemm, [&](const RingPosition<C::kStagingBuffers>& at, int m, int n) {
    mbarrier_wait(shared.staging_barriers.done[at.stage], at.parity);
    tma_store(e.d_map, shared.staging[at.stage][0], m, n);
    if constexpr (C::kForm == SwapAbForm::activated) {
      if (e.saved_input.data != nullptr) tma_store(e.saved_input_map, shared.staging[at.stage][1], m, n);
    }
    tma_store_commit();
    tma_store_wait_read<0>();
    mbarrier_arrive(shared.staging_barriers.empty[at.stage]);
  });
}

template <class C, class P>
__global__ void __launch_bounds__(C::kThreads, 1) persistent_ping_pong_swap_ab(const __grid_constant__ WarpgroupGemm gemm) {
  auto& shared = shared_storage<C>();
  const WarpgroupEpilogue& e = gemm.epilogue;

  run_prologue<C, Prologue{.shares_loads = true, .meets = Meeting::cluster}>(shared, gemm, [&] {
    PingPong::init(shared.schedule);
    mbarrier_init(shared.staging_order, kWarpgroup / 32);
    shared.staging_barriers.init();
  });
  if (becomes_producer<C>()) {
    const int rank = of_warp(static_cast<int>(cluster_rank()));
    const int warp = warp_rank();
    if (warp == 0 && elect_lane()) {
      Loader<C> loader{shared};
      for (int tile_index = first_tile_index(gemm); tile_index < gemm.raster.tiles; tile_index += gemm.clusters) {
        const TileAt tile = own_swap_ab_tile(gemm, tile_index);
        loader(0, gemm.k_tiles, [&](int k_tile, auto& stage, Mbarrier& full) {
          load_swap_ab_stage<P>(stage, gemm, full, k_tile * kBox, tile.m * C::kTileM, tile.n * C::kTileN, rank);
        });
      }
      shared.ring.wait_for_readers(gemm.cluster, loader.at);
    } else if constexpr (C::kHasStoreWarp) {
      const bool loads = C::kForm == SwapAbForm::sided && warp == 1, sends = warp == 2;
      if ((loads || sends) && elect_lane()) {
        wait_for_previous_kernel();
        if (loads) load_sides<C>(shared, gemm);
        if (sends) store_subtiles<C>(shared, gemm);
      }
    }
  } else {  // A consumer, of every second tile.
    RingPosition<C::kStages> at;
    const ConsumerThread self;
    const auto [consumer, thread, warp, lane] = self;
    const auto release = [&](int stage) {  // to every producer that writes here
      shared.ring.release_to_cluster(stage, gemm.cluster, thread);
    };
    PingPong schedule(shared.schedule, self, gemm, at);
    int round = consumer * (C::kSubtiles / C::kStagingBuffers);  // of the slots, with which a tile begins
    for (int index = schedule.first(gemm); index < gemm.raster.tiles; index += schedule.step(gemm)) {
      const TileAt tile = own_swap_ab_tile(gemm, index);
      const int m = tile.m * C::kTileM, n = tile.n * C::kTileN;
      const typename C::Epilogue epilogue(e, m, n, consumer);  // its bias comes meanwhile

      // Main loop.
      const unsigned parity = schedule.parity;
      schedule.begin(gemm, index);
      float accumulators[C::kMmaTiles][C::kTileN / 2];  // [64, tile n] of each
      const auto issue = [&](int k_tile) { multiply(P{}, shared.stages[at.stage], 0, k_tile > 0, accumulators); };
      const int last_stage = shared.ring.multiply_k_tiles(at, 0, gemm.k_tiles, issue, release);
      schedule.end_issue();
      end_mmas(e.alpha, accumulators);
      release(last_stage);
      schedule.end(gemm, at);

      // Epilogue.
      if constexpr (C::kHasStoreWarp) {
        mbarrier_wait(shared.staging_order[consumer], parity);
        if constexpr (C::kForm == SwapAbForm::activated) {
          epilogue.finish_activated(typename P::T{}, shared.staging, shared.staging_barriers, round, accumulators);
        } else {
          epilogue.finish_sided(typename P::T{}, shared.staging, shared.staging_barriers, round, accumulators);
        }
        if (elect_lane()) mbarrier_arrive(shared.staging_order[1 - consumer]);
        round += C::kConsumers * (C::kSubtiles / C::kStagingBuffers);
      } else if constexpr (C::kForm == SwapAbForm::plain) {
        epilogue.template finish_by_subtiles<C::kColumnsAtOnce>(typename P::T{}, shared.staging[consumer], accumulators);
      } else {
        const bool whole = min(m + C::kTileM, e.cols) <= e.d.mapped_cols;
        if (e.through_staging && !e.has_side && (whole || (e.activation == Activation::none && e.saved_input.data == nullptr))) {
          epilogue.template finish_by_subtiles<C::kColumnsAtOnce>(typename P::T{}, shared.staging[consumer], accumulators);
          if (!whole) epilogue.store_last_columns(accumulators);
        } else {
          tma_store_wait_read<0>();
          epilogue.finish_elements(shared.staging[consumer][0], accumulators);
        }
      }
    }
    tma_store_wait_read<0>();
  }
}

}  // namespace

void launch_persistent_ping_pong_swap_ab(CudaQueue& queue, const GemmCall& call) {
  const GemmArgs& args = call.args;
  WarpgroupGemm gemm = swap_ab_gemm(call);
  gemm.cols = make_tensor_map(args.b, static_cast<int>(call.plan.tile.n) / call.plan.cluster);
  gemm.raster = raster_in_bands(call, ceil_div(call.plan.tiling.tiles_m, call.plan.cluster), call.plan.tiling.tiles_n, call.plan.cluster);
  const TileAt reach = gemm.raster.reach(gemm.clusters);
  gemm.first_k_tiles[0] = FirstKTiles::of(args.a, gemm.rows_fastest, reach.m * call.plan.cluster * call.plan.tile.m);
  gemm.first_k_tiles[1] = FirstKTiles::of(args.b, gemm.cols_fastest, reach.n * call.plan.tile.n);
  const auto launch_form = [&]<class C>() {
    with_mma_form_of(gemm, [&]<class P>(P) {
      if constexpr (P::kCols == Fastest::k) {
        launch_kernel<C>(queue, "persistent_ping_pong_swap_ab", persistent_ping_pong_swap_ab<C, P>, gemm, call.plan.blocks);
      }
    });
  };
  with_tile<kPersistentPingPongSwapAbTiles>("persistent_ping_pong_swap_ab", call.plan.tile, [&]<int kM, int kN>() {
    const auto form = swap_ab_form(call.problem);
    const auto columns = static_cast<int>(columns_at_once(call.plan.tile, form));
    const auto map_of = [columns](const ConstMatrixView& like_d) { return like_d ? make_tensor_map(like_d, columns) : CUtensorMap{}; };
    switch (form) {
      case SwapAbForm::plain:
        gemm.epilogue.d_map = make_tensor_map(args.d, kSubtileRows);  // a bias of any type takes it
        return launch_form.template operator()<Config<kM, kN, SwapAbForm::plain>>();
      case SwapAbForm::activated:
        gemm.epilogue.d_map = map_of(args.d);
        gemm.epilogue.saved_input_map = map_of(args.saved_input);
        return launch_form.template operator()<Config<kM, kN, SwapAbForm::activated>>();
      case SwapAbForm::sided:
        gemm.epilogue.d_map = map_of(args.d);
        gemm.epilogue.side_map = map_of(args.derivative_of ? args.derivative_of : args.residual ? args.residual : args.d);
        return launch_form.template operator()<Config<kM, kN, SwapAbForm::sided>>();
      case SwapAbForm::any:
        return launch_form.template operator()<Config<kM, kN, SwapAbForm::any>>();
    }
  });
}

}  // namespace tilewave
