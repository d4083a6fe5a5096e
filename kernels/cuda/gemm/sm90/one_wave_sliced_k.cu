// Adds to warp_specialized, for outputs of about one wave: the consumers take every other stage of one tile's K, so that each product
// has the tile's whole width and a stage is free as soon as its own is done; then one's sums are added to the other's through shared
// memory. Sums that are stored as they are come from the consumer with the last stage, which fetches the other's while its last
// products run; anything dearer is shared, half of the columns each. Neighbouring blocks have their columns in common, and clusters of two,
// which share nothing else, put them on neighbouring SMs: what they ask L2 for at about the same time, it is asked for once. Where a
// weight's gradient has K enough, a block takes the tile of its SM instead, and a warp of its own brings D into L2 where sums will be added
// to it.
#include "kernels/cuda/gemm/sm90/tile_loads.h"
#include "kernels/cuda/gemm/sm90/tile_places.h"
#include "kernels/gemm/sm90/one_wave_sliced_k.h"

namespace tilewave {
namespace {

constexpr Tile kTile = kOneWaveSlicedKTiles[0];
constexpr int kTileM = static_cast<int>(kTile.m), kTileN = static_cast<int>(kTile.n);
constexpr int kStages = kSlicedStages, kConsumers = 2, kConsumerThreads = kConsumers * kWarpgroup;
constexpr int kHalf = kTileM / 4;  // of a thread's sums: those of half of the columns

// Half of a consumer's sums as its threads hold them, in a stage that nobody reads any more: [4 sums at a time][thread][4].
using HandedOver = float4[kHalf / 4][kWarpgroup];

struct SharedStorage {
  OperandStage<kTileN, kTileM> stages[kStages];
  std::byte staging[kSlicedStagingBuffers][kStagingBytes];
  Ones ones;
  alignas(1024) Ring<kStages> ring;
  Mbarrier sides[kSlicedStagingBuffers];
  float row_sums[kConsumers][kTileN];
  LoadsBegun loads;  // where tiles have places
  OwnTile own;

  // Where the `last`th k_tile from the end was, or would have been.
  __device__ __forceinline__ HandedOver& place(int k_tiles, int last) {
    return *reinterpret_cast<HandedOver*>(&stages[(k_tiles + kStages - last) % kStages]);
  }
};
static_assert(sizeof(SharedStorage) == one_wave_sliced_k_shared_bytes(kTile), "the plan knows what a block needs");
static_assert(kTileN == kBox, "a product has all rows of a tile");
static_assert(sizeof(HandedOver) <= sizeof(OperandStage<kTileN, kTileM>) && kStages >= 4, "sums are handed over in the last stages");
static_assert(sizeof(Ones) / 4 <= kConsumerThreads, "the consumers fill it");

__device__ __forceinline__ void hand_over(HandedOver& to, const float* accumulators) {
  const int thread = static_cast<int>(threadIdx.x % kWarpgroup);
#pragma unroll
  for (int i = 0; i < kHalf; i += 4) to[i / 4][thread] = four_of(accumulators + i);
}
__device__ __forceinline__ void fetch(const HandedOver& from, float* accumulators) {
  const int thread = static_cast<int>(threadIdx.x % kWarpgroup);
#pragma unroll
  for (int i = 0; i < kHalf; i += 4) {
    const float4 four = from[i / 4][thread];
    accumulators[i] = four.x, accumulators[i + 1] = four.y, accumulators[i + 2] = four.z, accumulators[i + 3] = four.w;
  }
}

template <class P>
constexpr bool kMaySumRows = P::kSumsRows;
template <>
constexpr bool kMaySumRows<AnyMmaForm> = true;

__device__ __forceinline__ SharedStorage& own_storage() {
  extern __shared__ __align__(1024) std::byte storage[];
  return storage_in<SharedStorage>(storage);
}

// The last warp is the producer, or where tiles have places the last but one.
template <class Gemm>
constexpr int kThreads = kConsumerThreads + (HasAssignment<Gemm> ? 64 : 32);

// A tile's first element of D.
struct Corner {
  int row, col;
};
__device__ __forceinline__ Corner corner_of(const WarpgroupGemm& gemm, int number) {
  const TileAt tile = gemm.raster(number);
  return {.row = tile.n * kTileN, .col = tile.m * kTileM};
}

// Whether both consumers finish, half of the columns each.
template <class P>
inline constexpr bool kBothFinish = std::is_same_v<P, AnyMmaForm>;

// The producer's warps. The first fills the ring before anybody waits for anybody; where tiles have places, a second one brings D into L2.
template <class P, class Gemm>
__device__ __forceinline__ void feed_slices(SharedStorage& shared, const Gemm& gemm) {
  if (HasAssignment<Gemm> && warp_rank() > kConsumerThreads / 32) {
    __syncthreads();
    const int tile = own_tile_number(shared, gemm);
    release_assignment(gemm);
    if (!gemm.epilogue.accumulate || is_no_tile(gemm, tile)) return;
    const auto [row, col] = corner_of(gemm, tile);
    return prefetch_d_tile<kTileM, kTileN>(shared.loads, gemm, row, col, 0, gemm.k_tiles);
  }
  const auto load = [&](const Corner& at, int stage, int k_tile) {
    load_stage(shared.stages[stage], gemm, shared.ring.full[stage], k_tile * kBox, at.row, at.col);
    if constexpr (HasAssignment<Gemm>) shared.loads.set(k_tile + 1);
  };
  const int begun = min(kStages, gemm.k_tiles);
  const auto begin = [&](int tile) {
    const Corner at = corner_of(gemm, tile);
    for (int k_tile = 0; k_tile < begun; ++k_tile) load(at, k_tile, k_tile);
  };
  const bool leads = elect_lane();
  int tile = static_cast<int>(blockIdx.x);
  if (leads) {
    gemm.prefetch_maps();
    shared.ring.init(1);  // a stage has one consumer
    if constexpr (kBothFinish<P>) mbarrier_init(shared.sides, 1);
    if constexpr (HasAssignment<Gemm>) mbarrier_init(shared.own.known, 1);
    mbarrier_init_fence();
    wait_for_previous_kernel();
    if constexpr (!HasAssignment<Gemm>) begin(tile);
    if (gemm.epilogue.through_staging) prefetch_tensor_map(gemm.epilogue.d_map);
  }
  __syncwarp();
  if constexpr (HasAssignment<Gemm>) tile = shared.own.choose(gemm.assignment, begin, [&] { forget_stages(shared.ring.full, begun); });
  __syncthreads();
  if (is_no_tile(gemm, tile)) return;
  const auto [row, col] = corner_of(gemm, tile);
  const Corner own = {.row = of_warp(row), .col = of_warp(col)};
  if (leads) {
    RingPosition<kStages> at{.parity = 1};  // the second round
    shared.ring.load_k_tiles(at, kStages, gemm.k_tiles, [&](int k_tile) { load(own, at.stage, k_tile); });
  }
}

// What the other consumer finishes: half of the columns, or all of a consumer's that has not the last k_tile.
template <class P>
__device__ __forceinline__ void hand_over_of(SharedStorage& shared, int k_tiles, bool has_last, const float (&accumulators)[kTileM / 2]) {
  if constexpr (kBothFinish<P>) {
    float given[kHalf];
#pragma unroll
    for (int i = 0; i < kHalf; ++i) given[i] = has_last ? accumulators[i] : accumulators[kHalf + i];
    hand_over(shared.place(k_tiles, has_last ? 1 : 2), given);
  } else {
    hand_over(shared.place(k_tiles, 2), accumulators);
    hand_over(shared.place(k_tiles, 4), accumulators + kHalf);
  }
}

template <class P, class Gemm>
__global__ void __launch_bounds__(kThreads<Gemm>, 1) one_wave_sliced_k(const __grid_constant__ Gemm gemm) {
  constexpr int kStagingBuffers = kSlicedStagingBuffers / (kBothFinish<P> ? 8 : 4);  // of a warp that finishes
  constexpr int kFinished = kBothFinish<P> ? kTileM / 2 : kTileM;                    // columns
  SharedStorage& shared = own_storage();
  const int consumer = warpgroup_rank();
  if (consumer == kConsumers) {
    feed_slices<P>(shared, gemm);
  } else {  // A consumer.
    const int thread = static_cast<int>(threadIdx.x % kWarpgroup);
    const bool has_last = consumer == 1;  // of K, and what is stored as it was summed
    const bool fills_ones = kMaySumRows<P> && gemm.epilogue.bias_gradient.data != nullptr;
    if (fills_ones) shared.ones.fill(gemm.operand_dtype);
    __syncthreads();
    const int tile = own_tile_number(shared, gemm);
    if (is_no_tile(gemm, tile)) return;
    const auto [row, col] = corner_of(gemm, tile);
    const bool sums_rows = fills_ones && col == 0;
    float accumulators[1][kTileM / 2];  // [64, tile m]
    float partials[kFinished / 2];
    wait_for_previous_kernel();
    const int first_buffer = static_cast<int>(threadIdx.x / 32 * kStagingBuffers % kSlicedStagingBuffers);
    WarpStaging<kStagingBuffers> staging = {
        .first = shared.staging[first_buffer], .arrived = shared.sides + first_buffer, .lane = thread % 32};
    TileEpilogue<1, kFinished, kStagingBuffers> epilogue(gemm.epilogue, staging, row, kBothFinish<P> ? col + consumer * kFinished : col);

    // Main loop.
    const int first = (gemm.k_tiles + consumer) % 2;
    with_mma_form(P{}, gemm, sums_rows, [&](auto mma_form) {
      float row_sums[1][4] = {};  // [64, 8]
      RingPosition<kStages> at;
      if (first == 1) at.advance();
      int previous = 0;
#pragma unroll
      for (float& sum : accumulators[0]) sum = 0.0f;
      for (int k_tile = first; k_tile < gemm.k_tiles; k_tile += 2) {
        wgmma_wait<0>();
        if (k_tile > first && thread == 0) shared.ring.release(previous);
        shared.ring.wait_full(at);
        multiply(mma_form, shared.stages[at.stage], shared.ones, 0, true, accumulators, row_sums);
        previous = at.stage;
        at.advance();
        at.advance();
      }
      if constexpr (!kBothFinish<P>) {
        if (has_last) {
          sync_warps<kConsumerThreads>();
          fetch(shared.place(gemm.k_tiles, 2), partials);
          fetch(shared.place(gemm.k_tiles, 4), partials + kHalf);
        }
      }
      end_mmas(gemm.epilogue.alpha, accumulators);
      if constexpr (mma_form.kSumsRows) {
        for_each_row_sum(row_sums[0], [&](int own, float sum) { shared.row_sums[consumer][own] = sum; });
      }
    });

    // Exchange.
    if (kBothFinish<P> || !has_last) {
      sync_warpgroup(1 + consumer);  // all its warps are done with its stages
      hand_over_of<P>(shared, gemm.k_tiles, has_last, accumulators[0]);
      sync_warps<kConsumerThreads>();
    }
    if (sums_rows && has_last) {
      for_each_row_sum(
          {}, [&](int own, float) { store_bias_gradient(gemm.epilogue, row + own, shared.row_sums[0][own] + shared.row_sums[1][own]); });
    }

    // Epilogue.
    if constexpr (kBothFinish<P>) {
      fetch(shared.place(gemm.k_tiles, 1 + consumer), partials);
      float kept[1][kHalf];
#pragma unroll
      for (int i = 0; i < kHalf; ++i) kept[0][i] = (has_last ? accumulators[0][kHalf + i] : accumulators[0][i]) + partials[i];
      epilogue.finish(kept);
    } else if (has_last) {
#pragma unroll
      for (int i = 0; i < kTileM / 2; ++i) accumulators[0][i] += partials[i];
      epilogue.template store<typename P::T>(accumulators);
    }
    tma_store_wait_read<0>();
  }
}

}  // namespace

void launch_one_wave_sliced_k(CudaQueue& queue, const GemmCall& call) {
  WarpgroupGemm gemm = warpgroup_gemm(call);
  gemm.raster = Raster::of(gemm.tiles_m, gemm.tiles_n, 1);
  const AssignedGemm assigned = assigned_gemm(queue, gemm, call.plan);
  const auto launch_with = [&]<class P, class Gemm>(P, const Gemm& with) {
    launch_clusters(queue, "one_wave_sliced_k", one_wave_sliced_k<P, Gemm>, with, blocks_of(queue, with), kThreads<Gemm>,
                    sizeof(SharedStorage));
  };
  const auto launch = [&]<class P>(P mma_form) {
    if constexpr (kMakesGradient<P>) {
      if (assigned.assignment.taken != nullptr) return launch_with(mma_form, assigned);
    }
    launch_with(mma_form, gemm);
  };
  if (gemm.epilogue.stores_accumulators && gemm.epilogue.bias_gradient.data == nullptr) {
    with_mma_form_of(gemm, launch);
  } else {
    with_wgrad_mma_form(gemm, launch);
  }
}

}  // namespace tilewave
