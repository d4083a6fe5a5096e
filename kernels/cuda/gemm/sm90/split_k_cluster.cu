// Adds to warp_specialized, for outputs of fewer tiles than SMs: the blocks of a cluster take equal parts of one tile's K. Each leaves
// its sums in its own shared memory, where its stages were; then each finishes every so many strips of the tile, adding up the
// blocks' sums in the order of their ranks, so that the result does not depend on who was first.
#include "kernels/cuda/gemm/sm90/kernel.h"
#include "kernels/gemm/facts/with_tile.h"
#include "kernels/gemm/sm90/split_k_cluster.h"

namespace tilewave {
namespace {

template <int kM, int kN>
struct Config : Cta<kM, kN> {
  using Cta<kM, kN>::kTile, Cta<kM, kN>::kWarps, Cta<kM, kN>::kConsumers, Cta<kM, kN>::kSubtiles;
  static constexpr int kStages = split_stages(kTile), kStagingBuffers = kSplitStagingBuffers;

  // The sums of each warp's shares, as its threads hold them: [share][4 sums at a time][thread][4].
  using Partial = float4[kWarps * kSubtiles][kSubtileValues / 4][32];

  struct SharedStorage {
    union {
      OperandStage<kN, kM> stages[kStages];
      Partial partial;
    };
    std::byte staging[kWarps][kStagingBuffers * kStagingBytes];  // a warp's own
    Ones ones;
    alignas(1024) Ring<kStages> ring;
    Mbarrier sides[kWarps][kStagingBuffers];
    float row_sums[kN];
  };
  static_assert(sizeof(SharedStorage) == split_k_cluster_shared_bytes(kTile), "the plan knows what a block needs");
  static_assert(kN == kConsumers * kBox, "a consumer takes 64 rows");
};

struct ClusterGemm : WarpgroupGemm {
  Divisor by_cluster, by_tiles_m;
};

// A warp's accumulators, where its stages were; and a subtile's sum over the CTAs of the cluster, in the order of their ranks.
template <class C>
__device__ __forceinline__ void write_partials(typename C::SharedStorage& shared, int warp, int lane,
                                               const float (&accumulators)[C::kTileM / 2]) {
#pragma unroll
  for (int i = 0; i < C::kTileM / 2; i += 4)
    shared.partial[warp * C::kSubtiles + i / kSubtileValues][i % kSubtileValues / 4][lane] = four_of(accumulators + i);
}
__device__ __forceinline__ void add_partials(const ClusterGemm& gemm, float4 (&partial)[kSubtileValues / 4][32], int lane,
                                             float (&z)[kSubtileValues]) {
#pragma unroll
  for (float& sum : z) sum = 0.0f;
  for (int other = 0; other < gemm.cluster; ++other) {
#pragma unroll
    for (int i = 0; i < kSubtileValues; i += 4) add_four(z + i, load_from_cta(partial[i / 4][lane], other));
  }
}

template <class C, class P>
__global__ void __launch_bounds__(C::kThreads, 1) split_k_cluster(const __grid_constant__ ClusterGemm gemm) {
  auto& shared = shared_storage<C>();
  const int rank = static_cast<int>(cluster_rank()), tile = static_cast<int>(gemm.by_cluster.quotient(blockIdx.x));
  const int row = static_cast<int>(gemm.by_tiles_m.quotient(tile)) * C::kTileN,
            col = static_cast<int>(gemm.by_tiles_m.remainder(tile)) * C::kTileM;
  const auto first_of = [&](int part) {
    return static_cast<int>(gemm.by_cluster.quotient(static_cast<unsigned>(gemm.k_tiles) * static_cast<unsigned>(part)));
  };
  const int begin = first_of(rank), end = first_of(rank + 1);
  const bool sums_rows = gemm.epilogue.bias_gradient.data != nullptr && col == 0;

  constexpr Prologue kPrologue = {.readers = C::kConsumers, .prefetches_maps = false, .fills_ones = true, .prefetches_k_tiles = false};
  run_prologue<C, kPrologue>(shared, gemm, [&] { mbarrier_init(shared.sides, 1); });
  if (becomes_producer<C>()) {
    if (elect_lane_of(0)) Loader<C>{shared}.load_tile(gemm, begin, end, row, col);
    __syncwarp();
    cluster_sync();
  } else {  // A consumer.
    const auto [consumer, thread, warp, lane] = ConsumerThread();

    // Main loop.
    float accumulators[1][C::kTileM / 2];  // [64, tile m]
    with_mma_form(P{}, gemm, sums_rows, [&](auto mma_form) {
      float row_sums[1][4];  // [64, 8]
      RingPosition<C::kStages> at;
      const auto issue = [&](int k_tile) {
        multiply(mma_form, shared.stages[at.stage], shared.ones, consumer, k_tile > begin, accumulators, row_sums);
      };
      shared.ring.multiply_k_tiles(at, begin, end, issue, [&](int stage) { shared.ring.release_by(thread == 0, stage); });
      end_mmas(gemm.epilogue.alpha, accumulators);
      if constexpr (mma_form.kSumsRows) {
        for_each_row_sum(row_sums[0], [&](int own, float sum) { shared.row_sums[consumer * kBox + own] = sum; });
      }
    });

    // Share out.
    sync_warps<C::kConsumers * kWarpgroup>();  // both are done with the stages
    write_partials<C>(shared, warp, lane, accumulators[0]);
    cluster_sync();

    // Epilogue, of every so many shares of the tile.
    WarpStaging<C::kStagingBuffers> staging = {.first = shared.staging[warp], .arrived = shared.sides[warp], .lane = lane};
#pragma unroll 1
    for (int subtile = rank + gemm.cluster * warp; subtile < C::kWarps * C::kSubtiles; subtile += gemm.cluster * C::kWarps) {
      const SubtileAt at = {.row = row + subtile / C::kSubtiles * kSubtileRows, .col = col + subtile % C::kSubtiles * kSubtileColumns};
      if (at.row >= gemm.epilogue.rows || at.col >= gemm.epilogue.cols) continue;
      SubtileBias bias;
      const bool through_staging = goes_through_staging(gemm.epilogue, at.col, kSubtileColumns);
      if (through_staging && gemm.epilogue.bias.data != nullptr) load_bias_async(gemm.epilogue, at.row, at.col, bias);
      if (through_staging && gemm.epilogue.has_side) staging.load_async(gemm.epilogue.side_map, 0, at.row, at.col);
      float z[kSubtileValues];
      add_partials(gemm, shared.partial[subtile], lane, z);
      if (!through_staging) {
        staging.settle();
        finish_elements(gemm.epilogue, staging.first, at, z);
        continue;
      }
      if (gemm.epilogue.d.dtype == DType::f32) {
        staging.put(gemm.epilogue.d_map, at, z, gemm.epilogue.accumulate);
      } else if constexpr (std::is_same_v<P, AnyMmaForm>) {
        with_subtile_form(gemm.epilogue, [&](auto form) {
          if (gemm.epilogue.bias.data != nullptr) add_bias<typename decltype(form)::T>(gemm.epilogue, bias, z);
          finish_subtile(form, gemm.epilogue, staging, 0, at, z);
        });
      } else {
        staging.template put<typename P::T>(staging.next(), gemm.epilogue.d_map, at, z);
      }
    }
    if (sums_rows && rank == 0 && warp * 32 + lane < C::kTileN) {
      float sum = 0.0f;
      for (int other = 0; other < gemm.cluster; ++other) sum += load_from_cta(shared.row_sums[warp * 32 + lane], other);
      store_bias_gradient(gemm.epilogue, row + warp * 32 + lane, sum);
    }
    tma_store_wait_read<0>();
  }
  cluster_sync_relaxed();  // nobody leaves while another still reads from it
}

}  // namespace

void launch_split_k_cluster(CudaQueue& queue, const GemmCall& call) {
  with_tile<kSplitKClusterTiles>("split_k_cluster", call.plan.tile, [&]<int kM, int kN>() {
    using C = Config<kM, kN>;
    const ClusterGemm gemm = {warpgroup_gemm(call), Divisor::of(static_cast<unsigned>(call.plan.cluster)),
                              Divisor::of(static_cast<unsigned>(call.plan.tiling.tiles_m))};
    with_wgrad_mma_form(gemm,
                        [&]<class P>(P) { launch_kernel<C>(queue, "split_k_cluster", split_k_cluster<C, P>, gemm, call.plan.blocks); });
  });
}

}  // namespace tilewave
