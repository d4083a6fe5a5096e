// Adds to split_k_cluster: the blocks that share the K of a tile are wherever an SM is free, so that seven of them can fill 126 of 132 SMs,
// where clusters of seven leave a third idle; and neighbours take the same part of K of tiles side by side, so that what they ask L2 for at
// about the same time, it is asked for once. Each warp finishes every so many strips of its own, which stay in its registers, and leaves
// those that other blocks finish in the workspace; it adds theirs to its own as soon as the same warp of every block has told, in the order
// of K: the result does not depend on who was first. The consumers take their last k_tiles in turn, so that one shares out under the
// other's products. Blocks wait for each other, so all of them run at once or none.
#include "kernels/cuda/gemm/sm90/schedule.h"
#include "kernels/cuda/prim/flag.h"
#include "kernels/gemm/facts/with_tile.h"
#include "kernels/gemm/sm90/split_k.h"

namespace tilewave {
namespace {

template <int kM, int kN>
struct Config : Cta<kM, kN> {
  using Cta<kM, kN>::kTile, Cta<kM, kN>::kWarps, Cta<kM, kN>::kConsumers;
  static constexpr int kStages = split_k_stages(kTile), kStagingBuffers = kWorkspaceSplitStagingBuffers;
  static constexpr int kOrderedKTiles = kStages - 1;  // of K's last blocks: the ring's but one, since a stage is released a block late

  struct SharedStorage {
    OperandStage<kN, kM> stages[kStages];
    std::byte staging[kWarps][kStagingBuffers * kStagingBytes];  // a warp's own
    Ones ones;
    alignas(1024) Ring<kStages> ring;
  };
  static_assert(sizeof(SharedStorage) == split_k_shared_bytes(kTile), "the plan knows what a block needs");
  static_assert(kN == kConsumers * kBox && kN == kWarps * kSubtileRows, "a consumer takes 64 rows, a warp 16");
};

struct SplitGemm : WarpgroupGemm {
  int split = 1;
  Divisor by_split, by_tiles, by_tiles_n;
  unsigned* left = nullptr;    // [tiles][warps]: blocks whose sums are there, until all who want them have seen it
  float4* partials = nullptr;  // [tiles][split][warps][shares][share / 4][lanes]: a block's, as its threads hold them
  float* row_sums = nullptr;   // [tiles][split][tile n]
};

// Adds other blocks' sums of a thread's share, in their order, two blocks' loads at a time: where(other) is where one's lie.
template <class Where>
__device__ __forceinline__ void add_partials(float (&z)[kSubtileValues], int partials, Where&& where) {
  constexpr int kAhead = 2;
  for (int first = 0; first < partials; first += kAhead) {
    float4 accumulators[kAhead][kSubtileValues / 4];
#pragma unroll
    for (int ahead = 0; ahead < kAhead; ++ahead) {
      if (first + ahead >= partials) break;
      const float4* const from = where(first + ahead);
#pragma unroll
      for (int i = 0; i < kSubtileValues / 4; ++i) accumulators[ahead][i] = __ldcg(from + i * 32);
    }
#pragma unroll
    for (int ahead = 0; ahead < kAhead; ++ahead) {
      if (first + ahead >= partials) break;
#pragma unroll
      for (int i = 0; i < kSubtileValues / 4; ++i) add_four(z + 4 * i, accumulators[ahead][i]);
    }
  }
}

// A subtile's sums, which are D or are added to it.
template <int kStagingBuffers>
__device__ __forceinline__ void store_subtile(const SplitGemm& gemm, WarpStaging<kStagingBuffers>& staging, const SubtileAt& at,
                                              float (&z)[kSubtileValues]) {
  const WarpgroupEpilogue& epilogue = gemm.epilogue;
  if (!goes_through_staging(epilogue, at.col, kSubtileColumns)) {
    staging.settle();
    finish_elements(epilogue, staging.first, at, z);
  } else if (epilogue.d.dtype == DType::f32) {
    staging.put(epilogue.d_map, at, z, epilogue.accumulate);
  } else if (gemm.operand_dtype == DType::bf16) {
    staging.template put<bf16>(staging.next(), epilogue.d_map, at, z);
  } else {
    staging.template put<f16>(staging.next(), epilogue.d_map, at, z);
  }
}

// The sums of a tile's rows over a CTA's part of K; the lanes that have one add up all parts'.
template <int kTileN>
__device__ __forceinline__ float* row_sums_of(const SplitGemm& gemm, int tile, int part) {
  return gemm.row_sums + (static_cast<std::int64_t>(tile) * gemm.split + part) * kTileN;
}
template <int kTileN>
__device__ __forceinline__ void store_row_sums(const SplitGemm& gemm, int tile, int row, int own, int lane) {
  float sum = 0.0f;
  for (int part = 0; part < gemm.split && lane < kSubtileRows; ++part) sum += __ldcg(row_sums_of<kTileN>(gemm, tile, part) + own);
  if (lane < kSubtileRows) store_bias_gradient(gemm.epilogue, row + own, sum);
}

template <class C, class P>
__global__ void __launch_bounds__(C::kThreads, 1) split_k(const __grid_constant__ SplitGemm gemm) {
  auto& shared = shared_storage<C>();
  constexpr int kTileM = C::kTileM, kTileN = C::kTileN, kWarps = C::kWarps, kSubtiles = C::kSubtiles;
  const WarpgroupEpilogue& epilogue = gemm.epilogue;
  // Neighbours have the same part of K and the same columns.
  const int part = static_cast<int>(gemm.by_tiles.quotient(blockIdx.x)), tile = static_cast<int>(gemm.by_tiles.remainder(blockIdx.x));
  const int row = static_cast<int>(gemm.by_tiles_n.remainder(tile)) * kTileN,
            col = static_cast<int>(gemm.by_tiles_n.quotient(tile)) * kTileM;
  const auto first_of = [&](int part) {
    return static_cast<int>(gemm.by_split.quotient(static_cast<unsigned>(gemm.k_tiles) * static_cast<unsigned>(part)));
  };
  const int begin = first_of(part), end = first_of(part + 1);
  const bool sums_rows = epilogue.bias_gradient.data != nullptr && col == 0;

  run_prologue<C, Prologue{.readers = C::kConsumers, .fills_ones = true, .prefetches_k_tiles = false}>(shared, gemm);
  if (becomes_producer<C>()) {
    if (elect_lane_of(0)) Loader<C>{shared}.load_tile(gemm, begin, end, row, col);
  } else {  // A consumer.
    const auto [consumer, thread, warp, lane] = ConsumerThread();
    const auto partials_of = [&](int block, int subtile) {
      const std::int64_t index = ((static_cast<std::int64_t>(tile) * gemm.split + block) * kWarps + warp) * kSubtiles + subtile;
      return gemm.partials + index * (kSubtileValues / 4) * 32 + lane;
    };
    const auto finisher = [&](int subtile) { return static_cast<int>(gemm.by_split.remainder(warp * kSubtiles + subtile)); };

    // Main loop.
    float accumulators[1][kTileM / 2];  // [64, tile m]
    const InTurn<C::kConsumers, C::kOrderedKTiles> turn(consumer, true, begin, end);
    with_mma_form(P{}, gemm, sums_rows, [&](auto mma_form) {
      float row_sums[1][4];  // [64, 8]
      RingPosition<C::kStages> at;
      const auto issue = [&](int block) {
        multiply(mma_form, shared.stages[at.stage], shared.ones, consumer, block > begin, accumulators, row_sums);
        turn.issued(block);
      };
      const auto wait_in_order = [&](int block) { turn.before(block); };
      shared.ring.multiply_k_tiles(
          at, begin, end, issue, [&](int stage) { shared.ring.release_by(thread == 0, stage); }, wait_in_order);
      end_mmas(epilogue.alpha, accumulators);
      if constexpr (mma_form.kSumsRows) {
        for_each_row_sum(row_sums[0], [&](int own, float sum) { row_sums_of<kTileN>(gemm, tile, part)[consumer * kBox + own] = sum; });
      }
    });

    // Share out.
#pragma unroll
    for (int subtile = 0; subtile < kSubtiles; ++subtile) {
      if (finisher(subtile) == part) continue;
#pragma unroll
      for (int i = 0; i < kSubtileValues; i += 4)
        __stcg(partials_of(part, subtile) + i * 8, four_of(accumulators[0] + subtile * kSubtileValues + i));
    }
    // Its sums are waited for once for each share that lies in D, and for the bias gradient.
    const bool below = row + warp * kSubtileRows >= epilogue.rows;
    const int inside = below ? 0 : min((epilogue.cols - col - 1) / kSubtileColumns + 1, kSubtiles);
    const auto waiters = static_cast<unsigned>(inside + (sums_rows ? 1 : 0)), all = static_cast<unsigned>(gemm.split);
    unsigned* const left = gemm.left + tile * kWarps + warp;
    if (waiters > 0) add_to_flag(left);

    // Epilogue, of every so many shares of the warp.
    WarpStaging<C::kStagingBuffers> staging = {.first = shared.staging[warp], .arrived = nullptr, .lane = lane};
#pragma unroll
    for (int subtile = 0; subtile < kSubtiles; ++subtile) {
      if (subtile >= inside || finisher(subtile) != part) continue;
      const SubtileAt at = {.row = row + warp * kSubtileRows, .col = col + subtile * kSubtileColumns};
      float z[kSubtileValues];
#pragma unroll
      for (int i = 0; i < kSubtileValues; ++i) z[i] = accumulators[0][subtile * kSubtileValues + i];
      wait_for_added(left, all, waiters);
      add_partials(z, gemm.split - 1, [&](int other) { return partials_of(other < part ? other : other + 1, subtile); });
      store_subtile(gemm, staging, at, z);
    }
    if (sums_rows && part == 0) {
      wait_for_added(left, all, waiters);
      store_row_sums<kTileN>(gemm, tile, row, warp * kSubtileRows + lane, lane);
    }
    tma_store_wait_read<0>();
  }
}

}  // namespace

void launch_split_k(CudaQueue& queue, const GemmCall& call) {
  const std::int64_t tiles = call.plan.tiling.tiles;
  SplitGemm gemm = {warpgroup_gemm(call)};
  gemm.split = call.plan.split;
  gemm.by_split = Divisor::of(static_cast<unsigned>(call.plan.split));
  gemm.by_tiles = Divisor::of(static_cast<unsigned>(tiles));
  gemm.by_tiles_n = Divisor::of(static_cast<unsigned>(call.plan.tiling.tiles_n));
  gemm.left = flags_of(queue, tiles * kWorkspaceSplitWarps);
  gemm.partials = static_cast<float4*>(call.args.workspace);
  gemm.row_sums = reinterpret_cast<float*>(gemm.partials + tiles * call.plan.split * call.plan.tile.m * call.plan.tile.n / 4);
  with_tile<kSplitKTiles>("split_k", call.plan.tile, [&]<int kM, int kN>() {
    using C = Config<kM, kN>;
    const CtasRun how = gemm.split > 1 ? CtasRun::all_at_once : CtasRun::anyhow;  // a block that has all of its tile waits for nobody
    with_wgrad_mma_form(gemm, [&]<class P>(P) { launch_kernel<C>(queue, "split_k", split_k<C, P>, gemm, call.plan.blocks, how); });
  });
}

}  // namespace tilewave
