// CTAs that stay and take tile after tile in an order that keeps operands in L2, so that the producer loads the next tile's stages while
// the consumers finish this one; clusters of two, one above the other in D, that share each load of their columns; and stores by TMA from
// swizzled staging buffers, which run under the next tile's MMAs.
#pragma once

#include "kernels/cuda/gemm/sm90/schedule.h"
#include "kernels/cuda/gemm/sm90/tile_loads.h"

namespace tilewave {

// kConsumerCount consumers that have kRowBoxes boxes of 64 rows of a tile each; so many stages, so many staging buffers of a warp.
template <int kM, int kN, int kConsumerCount, int kStageCount, int kBufferCount, class ScheduleOf>
struct PersistentConfig : Cta<kM, kN, kConsumerCount> {
  using Schedule = ScheduleOf;
  static constexpr int kStages = kStageCount, kStagingBuffers = kBufferCount, kMmaTiles = kN / kBox / Schedule::kConsumersPerTile;
  static_assert(Schedule::kConsumersPerTile * kMmaTiles * kBox == kN, "consumers share the rows of a tile");

  struct SharedStorage {
    OperandStage<kN, kM> stages[kStages];
    std::byte staging[kConsumerCount * 4][kStagingBuffers * kStagingBytes];  // a warp's own
    Ones ones;
    alignas(1024) Ring<kStages> ring;
    LoadsBegun loads;
    Mbarrier sides[kConsumerCount * 4][kStagingBuffers];
    typename Schedule::SharedStorage schedule;
  };
};

template <class C, class P>
__global__ void __launch_bounds__(C::kThreads, 1) persistent(const __grid_constant__ WarpgroupGemm gemm) {
  auto& shared = shared_storage<C>();
  constexpr Prologue kPrologue = {.readers = C::Schedule::kConsumersPerTile,
                                  .shares_loads = true,
                                  .prefetches_maps = false,
                                  .fills_ones = true,
                                  .meets = Meeting::cluster};
  run_prologue<C, kPrologue>(shared, gemm, [&] {
    C::Schedule::init(shared.schedule);
    mbarrier_init(shared.sides, 1);
  });

  if (becomes_producer<C>()) return feed_tiles<C>(shared, gemm);
  const ConsumerThread self;
  WarpStaging<C::kStagingBuffers> staging = {.first = shared.staging[self.warp], .arrived = shared.sides[self.warp], .lane = self.lane};
  RingPosition<C::kStages> at;
  const auto release = [&](int stage) {  // to every producer that writes here
    shared.ring.release_to_cluster(stage, gemm.cluster, self.thread);
  };
  typename C::Schedule schedule(shared.schedule, self, gemm, at);
  for (int index = schedule.first(gemm); index < gemm.raster.tiles; index += schedule.step(gemm)) {
    const TileAt tile = own_tile(gemm, index);
    const int row = tile.n * C::kTileN + schedule.first_box() * kBox, col = tile.m * C::kTileM;
    TileEpilogue<C::kMmaTiles, C::kTileM, C::kStagingBuffers> epilogue(gemm.epilogue, staging, row, col);

    // Main loop.
    const auto turn = schedule.begin(gemm, index);
    float accumulators[C::kMmaTiles][C::kTileM / 2];  // [64, tile m] of each
    with_mma_form(P{}, gemm, gemm.epilogue.bias_gradient.data != nullptr && col == 0, [&](auto mma_form) {
      float row_sums[C::kMmaTiles][4];  // [64, 8] of each
      const auto issue = [&](int k_tile) {
        multiply(mma_form, shared.stages[at.stage], shared.ones, schedule.first_box(), k_tile > 0, accumulators, row_sums);
        turn.issued(k_tile);
      };
      const int last_stage = shared.ring.multiply_k_tiles(at, 0, gemm.k_tiles, issue, release, [&](int k_tile) { turn.before(k_tile); });
      schedule.end_issue();
      end_mmas(gemm.epilogue.alpha, accumulators);
      release(last_stage);
      if constexpr (mma_form.kSumsRows) {
        for (int i = 0; i < C::kMmaTiles; ++i) finish_bias_gradient(gemm.epilogue, row + i * kBox, row_sums[i]);
      }
    });
    schedule.end(gemm, at);

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

}  // namespace tilewave
