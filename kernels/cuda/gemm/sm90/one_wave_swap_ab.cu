// Adds to warp_specialized tiles of which one wave is enough: wgmma's rows run along M, its columns along N in steps of 32, so that a
// tile's N is what fills the wave. A thread's sums then are neighbours along N, and D's along M: stmatrix transposes them on their way
// through shared memory, where they take the ring's next stages, as do side inputs, which the producer asks for like a k_tile. The
// consumers take the last k_tiles, which the ring holds by then, one after the other: the first store under the last one's products.
// Where operands are more than L2 keeps, a block takes the tile of its SM; otherwise clusters of two, which share nothing, put tiles with
// the same rows of A on neighbouring SMs.
#include "kernels/cuda/gemm/sm90/schedule.h"
#include "kernels/cuda/gemm/sm90/tile_loads.h"
#include "kernels/cuda/gemm/sm90/tile_places.h"
#include "kernels/cuda/gemm/sm90/transposed.h"
#include "kernels/gemm/facts/with_tile.h"
#include "kernels/gemm/sm90/one_wave_swap_ab.h"

namespace tilewave {
namespace {

constexpr int kWgradGroup = 4;  // tiles along M: neighbours, which ask for the same at the same time, have more in common so

template <int kM, int kN>
struct Config : Cta<kM, kN, swap_ab_consumers({kM, kN})> {
  using Cta<kM, kN, swap_ab_consumers({kM, kN})>::kTile, Cta<kM, kN, swap_ab_consumers({kM, kN})>::kConsumers;
  static constexpr int kStages = swap_ab_stages(kTile);
  static constexpr int kMmaTiles = kM / kConsumers / kBox;  // of 64 rows, a consumer's
  static constexpr int kOrderedKTiles = kStages - 1;        // of K's last blocks: what loads them waits for none of these

  using Stage = SwapAbStage<kM, kN>;
  struct SharedStorage {
    Stage stages[kStages];
    alignas(1024) Ring<kStages> ring;
    LoadsBegun loads;
    OwnTile own;
  };
  static_assert(sizeof(SharedStorage) == one_wave_swap_ab_shared_bytes(kTile), "the plan knows what a block needs");
  // D and saved_input, or an fp32 D's halves, of a consumer, leave by way of a stage, or of one each.
  static constexpr int kLineBytes = kN * 128, kLinesBytes = kMmaTiles * kLineBytes;
  static constexpr bool kOneStage = 2 * kLinesBytes <= static_cast<int>(sizeof(Stage));
  static_assert(kLinesBytes <= static_cast<int>(sizeof(Stage)) && kStages >= (kOneStage ? 1 : 2) * kConsumers);
};

// The consumers' parts of a side input, each into a stage of its own.
template <class C>
__device__ __forceinline__ void load_side(typename C::SharedStorage& shared, const WarpgroupGemm& gemm, RingPosition<C::kStages> at, int m,
                                          int n) {
  for (int consumer = 0; consumer < C::kConsumers; ++consumer, at.advance()) {
    shared.ring.wait_empty(at);
    mbarrier_arrive_expecting(shared.ring.full[at.stage], C::kMmaTiles * C::kLineBytes);
    auto* const lines = reinterpret_cast<std::byte*>(&shared.stages[at.stage]);
    for (int mma_tile = 0; mma_tile < C::kMmaTiles; ++mma_tile) {
      for (int line = 0; line < C::kTile.n; line += kSubtileRows) {
        tma_load(lines + mma_tile * C::kLineBytes + line * 128, gemm.epilogue.side_map, shared.ring.full[at.stage],
                 m + (consumer * C::kMmaTiles + mma_tile) * kBox, n + line);
      }
    }
  }
}

// A tile's first element of D.
struct Corner {
  int m, n;
};
template <class C>
__device__ __forceinline__ Corner corner_of(const WarpgroupGemm& gemm, int index) {
  const TileAt tile = own_tile(gemm, index);
  return {.m = tile.m * C::kTileM, .n = tile.n * C::kTileN};
}
// The producer's warps: one loads, one sees to it that D is in L2 where sums are added to it, and where tiles are assigned one says that
// the CTA has chosen.
template <class C, class P, class Gemm>
__device__ __forceinline__ void feed_tile(typename C::SharedStorage& shared, const Gemm& gemm) {
  constexpr bool kAssigned = HasAssignment<Gemm>;
  const WarpgroupEpilogue& e = gemm.epilogue;
  RingPosition<C::kStages> at;
  if (warp_rank() == 0) {
    const auto load = [&](const Corner& from, int stage, int k_tile) {
      mbarrier_arrive_expecting(shared.ring.full[stage], C::Stage::kBytes);
      load_boxes(shared.stages[stage].rows, gemm.rows, P::kRows, shared.ring.full[stage], k_tile * kBox, from.m);
      load_boxes(shared.stages[stage].cols, gemm.cols, P::kCols, shared.ring.full[stage], k_tile * kBox, from.n);
      shared.loads.set(k_tile + 1);
    };
    int begun = 0, own = first_tile_index(gemm);
    WaitOnce wait_for_operands;
    if constexpr (kAssigned) {
      wait_for_operands();
      begun = min(C::kStages, gemm.k_tiles);
      const auto begin = [&](int chosen) {
        const Corner first = corner_of<C>(gemm, chosen);
        for (int k_tile = 0; k_tile < begun; ++k_tile) load(first, k_tile, k_tile);
      };
      own = shared.own.choose(gemm.assignment, begin, [&] { forget_stages(shared.ring.full, begun); });
      if (is_no_tile(gemm, own)) return;
      at.advance(std::int64_t{begun});
    }
    const Corner own_corner = corner_of<C>(gemm, own);
    if (elect_lane()) {
      shared.ring.load_k_tiles(at, begun, gemm.k_tiles, [&](int k_tile) {
        wait_for_operands();
        load(own_corner, at.stage, k_tile);
      });
      if (e.has_side && goes_through_staging(e, own_corner.m, C::kTileM)) load_side<C>(shared, gemm, at, own_corner.m, own_corner.n);
    }
  } else if (warp_rank() == 1 && e.stores_accumulators && e.accumulate) {
    wait_for_previous_kernel();
    int own = first_tile_index(gemm);
    if constexpr (kAssigned) {
      own = shared.own.wait();
      if (is_no_tile(gemm, own)) return;
    }
    const auto [m, n] = corner_of<C>(gemm, own);
    prefetch_d_tile<C::kTileM, C::kTileN>(shared.loads, gemm, n, m, 0, gemm.k_tiles);
  } else if constexpr (kAssigned) {
    if (threadIdx.x == 64) {
      shared.own.wait();
      gemm.assignment.release();
    }
  }
}

template <class C, class P, class Gemm>
__global__ void __launch_bounds__(C::kThreads, 1) one_wave_swap_ab(const __grid_constant__ Gemm gemm) {
  auto& shared = shared_storage<C>();
  constexpr bool kAssigned = HasAssignment<Gemm>;
  const WarpgroupEpilogue& e = gemm.epilogue;
  run_prologue<C, Prologue{.readers = C::kConsumers, .prefetches_k_tiles = !kAssigned}>(shared, gemm, [&] {
    if constexpr (kAssigned) mbarrier_init(shared.own.known, 1);
  });
  if (becomes_producer<C>()) {
    feed_tile<C, P>(shared, gemm);
  } else {  // A consumer: main loop, then epilogue.
    RingPosition<C::kStages> at;
    const int consumer = warpgroup_rank() - 1;
    const bool leads = threadIdx.x % kWarpgroup == 0;
    int own = first_tile_index(gemm);
    if constexpr (kAssigned) {
      own = shared.own.wait();
      if (is_no_tile(gemm, own)) return;
    }
    float accumulators[C::kMmaTiles][C::kTileN / 2];  // [64 blocks, tile n]
    const InTurn<C::kConsumers, C::kOrderedKTiles> turn(consumer, true, 0, gemm.k_tiles);
    const auto issue = [&](int k_tile) {
      multiply(P{}, shared.stages[at.stage], consumer * C::kMmaTiles, k_tile > 0, accumulators);
      turn.issued(k_tile);
    };
    const auto wait_in_order = [&](int k_tile) { turn.before(k_tile); };
    const auto release = [&](int stage) { shared.ring.release_by(leads, stage); };
    const int last_stage = shared.ring.multiply_k_tiles(at, 0, gemm.k_tiles, issue, release, wait_in_order);
    const auto [m, n] = corner_of<C>(gemm, own);
    const bool through_lines = goes_through_staging(e, m, C::kTileM);  // TMA takes a whole tile to D
    const SwapAbEpilogue<C> epilogue(e, m + consumer * C::kMmaTiles * kBox, n, consumer);
    end_mmas(e.alpha, accumulators);
    release(last_stage);

    const auto stage_after = [&](int steps) {  // once nobody reads it
      RingPosition<C::kStages> other = at;
      other.advance(std::int64_t{steps});
      if (e.has_side && through_lines) {
        shared.ring.wait_full(other);
      } else {
        shared.ring.wait_empty(other);
      }
      return reinterpret_cast<std::byte*>(&shared.stages[other.stage]);
    };
    std::byte* const lines = stage_after(consumer);
    const auto more_lines = [&] { return C::kOneStage ? lines + C::kLinesBytes : stage_after(C::kConsumers + consumer); };
    if (!through_lines) {
      epilogue.finish_elements(lines, accumulators);
    } else if (e.d.dtype == DType::f32) {
      epilogue.finish_fp32(lines, more_lines(), accumulators);
    } else {
      epilogue.finish(typename P::T{}, lines, e.saved_input.data != nullptr ? more_lines() : lines, accumulators);
    }
  }
}

}  // namespace

void launch_one_wave_swap_ab(CudaQueue& queue, const GemmCall& call) {
  WarpgroupGemm gemm = swap_ab_gemm(call);
  if (gemm.cols_fastest == Fastest::other) {
    const auto clusters_n = static_cast<int>(call.plan.tiling.tiles_n / call.plan.cluster);
    gemm.raster = Raster::of(static_cast<int>(call.plan.tiling.tiles_m), clusters_n, kWgradGroup);
  }
  const AssignedGemm assigned = assigned_gemm(queue, gemm, call.plan);
  const bool assigns_tiles = assigned.assignment.taken != nullptr;
  with_tile<kOneWaveSwapAbTiles>("one_wave_swap_ab", call.plan.tile, [&]<int kM, int kN>() {
    using C = Config<kM, kN>;
    const auto launch_with = [&](auto* kernel, const auto& with) {
      launch_kernel<C>(queue, "one_wave_swap_ab", kernel, with, blocks_of(queue, with));
    };
    with_mma_form_of(gemm, [&]<class P>(P) {
      if constexpr (kMakesGradient<P>) {
        if (assigns_tiles) return launch_with(one_wave_swap_ab<C, P, AssignedGemm>, assigned);
      }
      launch_with(one_wave_swap_ab<C, P, WarpgroupGemm>, gemm);
    });
  });
}

}  // namespace tilewave
