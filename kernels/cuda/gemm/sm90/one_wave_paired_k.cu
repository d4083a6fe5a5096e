// Adds to one_wave_sliced_k tiles twice as large, which ask L2 for two thirds of the bytes: the two blocks of a cluster take a half of one
// tile's K each, and each finishes half of its columns. A warp stores the sums that it does not finish straight into the other block's
// shared memory, where a barrier counts their bytes for the warp that does: no warp waits for any but its partner. There they are added up,
// and leave from where they arrived. The consumers take their last k_tiles in turn, so that one hands over under the other's products.
#include "kernels/cuda/gemm/sm90/schedule.h"
#include "kernels/cuda/gemm/sm90/tile_loads.h"
#include "kernels/gemm/sm90/one_wave_paired_k.h"

namespace tilewave {
namespace {

constexpr Tile kTile = kOneWavePairedKTiles[0];
constexpr int kTileM = static_cast<int>(kTile.m), kTileN = static_cast<int>(kTile.n);
constexpr int kStages = one_wave_paired_k_stages(kTile), kConsumers = 2, kWarps = kPairedWarps, kStagingBuffers = kPairedStagingBuffers;
constexpr int kOrderedKTiles = kStages - 1;  // of K's last blocks: what loads them waits for none of these
constexpr int kThreads = (kWarps + 2) * 32;  // the consumers' come first

using HandedOver = float4[kSubtileValues / 4][32];  // a warp's, [4 sums at a time][thread][4]

struct SharedStorage {
  OperandStage<kTileN, kTileM> stages[kStages];
  union {
    HandedOver handed_over[kWarps];
    std::byte staging[kWarps][kStagingBuffers][kStagingBytes];
  };
  alignas(1024) Ring<kStages> ring;
  Mbarrier arrived[kWarps];  // what is handed over to a warp
  LoadsBegun loads;
};
static_assert(sizeof(SharedStorage) == one_wave_paired_k_shared_bytes(kTile), "the plan knows what a block needs");
static_assert(kTileN == kConsumers * kBox && kTileM == 2 * kSubtileColumns, "a warp has two shares");

// The producer's warp: `blocks` of K from `first` on, of the tile that begins there. It fills the ring before anybody waits for anybody.
__device__ __forceinline__ void load_half(SharedStorage& shared, const WarpgroupGemm& gemm, int first, int blocks, const SubtileAt& tile) {
  const auto load = [&](int stage, int k_tile) {
    load_stage(shared.stages[stage], gemm, shared.ring.full[stage], (first + k_tile) * kBox, tile.row, tile.col);
    shared.loads.set(k_tile + 1);
  };
  const bool leads = elect_lane();
  if (leads) {
    gemm.prefetch_maps();
    shared.loads.set(0);
    shared.ring.init(kConsumers);
    mbarrier_init(shared.arrived, 1);
    for (Mbarrier& barrier : shared.arrived) mbarrier_arrive_expecting(barrier, sizeof(HandedOver));
    mbarrier_init_fence();
    wait_for_previous_kernel();
    for (int k_tile = 0; k_tile < min(kStages, blocks); ++k_tile) load(k_tile, k_tile);
  }
  __syncwarp();
  __syncthreads();
  cluster_sync_relaxed();
  if (leads) {
    RingPosition<kStages> at{.parity = 1};  // the second round
    shared.ring.load_k_tiles(at, kStages, blocks, [&](int k_tile) { load(at.stage, k_tile); });
  }
}

template <class P>
__global__ void __launch_bounds__(kThreads, 1) one_wave_paired_k(const __grid_constant__ WarpgroupGemm gemm) {
  extern __shared__ __align__(1024) std::byte storage[];
  auto& shared = storage_in<SharedStorage>(storage);
  const int rank = of_warp(static_cast<int>(cluster_rank())), warp = warp_rank();
  const TileAt tile = gemm.raster(static_cast<int>(blockIdx.x / 2));
  const int row = tile.n * kTileN, col = tile.m * kTileM, own_col = col + rank * kSubtileColumns;
  const int blocks = (gemm.k_tiles + 1) / 2, first = rank * blocks;  // of K; one beyond it comes as zeros

  if (warp == kWarps) return load_half(shared, gemm, first, blocks, {.row = row, .col = col});
  if (warp < kWarps) prefetch_first_k_tiles<kWarps * 32>(gemm, static_cast<int>(threadIdx.x), 2, first * kBox);
  __syncthreads();
  cluster_sync_relaxed();  // the other block's barriers are there too
  wait_for_previous_kernel();
  if (warp > kWarps) {  // What sums will be added to comes into L2.
    if (gemm.epilogue.accumulate) prefetch_d_tile<kSubtileColumns, kTileN>(shared.loads, gemm, row, own_col, 0, blocks);
    return;
  }

  // A consumer: main loop.
  const int consumer = warpgroup_rank(), lane = static_cast<int>(threadIdx.x % 32);
  const bool leads = threadIdx.x % kWarpgroup == 0;
  float accumulators[1][kTileM / 2];  // [64, tile m]
  RingPosition<kStages> at;
  const InTurn<kConsumers, kOrderedKTiles> turn(consumer, true, 0, blocks);
  const auto issue = [&](int k_tile) {
    multiply(P{}, shared.stages[at.stage], consumer, k_tile > 0, accumulators);
    turn.issued(k_tile);
  };
  const auto release = [&](int stage) { shared.ring.release_by(leads, stage); };
  shared.ring.multiply_k_tiles(at, 0, blocks, issue, release, [&](int k_tile) { turn.before(k_tile); });
  end_mmas(gemm.epilogue.alpha, accumulators);

  // Exchange: half of the columns.
  HandedOver& partials = shared.handed_over[warp];
  const CtaAddress there = address_in_cta(&partials[0][lane], rank ^ 1), its_barrier = address_in_cta(&shared.arrived[warp], rank ^ 1);
  float z[kSubtileValues];
#pragma unroll
  for (int i = 0; i < kSubtileValues; i += 4) {
    float given[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      given[j] = rank == 0 ? accumulators[0][kSubtileValues + i + j] : accumulators[0][i + j];
      z[i + j] = rank == 0 ? accumulators[0][i + j] : accumulators[0][kSubtileValues + i + j];
    }
    store_in_cta(there + i / 4 * sizeof(partials[0]), four_of(given), its_barrier);
  }
  mbarrier_wait(shared.arrived[warp], 0);
#pragma unroll
  for (int i = 0; i < kSubtileValues; i += 4) add_four(z + i, partials[i / 4][lane]);
  __syncwarp();  // the strips lie where they were

  // Epilogue.
  WarpStaging<kStagingBuffers> staging = {.first = shared.staging[warp][0], .lane = lane};
  const SubtileAt subtile = {.row = row + warp * kSubtileRows, .col = own_col};
  if (subtile.row >= gemm.epilogue.rows || subtile.col >= gemm.epilogue.cols) return;
  put_accumulators<typename P::T>(gemm.epilogue, staging, subtile, z, gemm.epilogue.accumulate);
  tma_store_wait_read<0>();
}

}  // namespace

void launch_one_wave_paired_k(CudaQueue& queue, const GemmCall& call) {
  WarpgroupGemm gemm = warpgroup_gemm(call);
  gemm.raster = Raster::of(gemm.tiles_m, gemm.tiles_n, 1);
  with_wgrad_mma_form(gemm, [&]<class P>(P) {
    if constexpr (kMakesGradient<P>)
      launch_clusters(queue, "one_wave_paired_k", one_wave_paired_k<P>, gemm, call.plan.blocks, kThreads, sizeof(SharedStorage));
  });
}

}  // namespace tilewave
