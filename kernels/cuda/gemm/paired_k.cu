// Adds to sliced_k tiles twice as large, which ask L2 for two thirds of the bytes: the two blocks of a cluster take a half of one tile's K
// each, and each finishes half of its columns. A warp stores the sums that it does not finish straight into the other block's shared
// memory, where a barrier counts their bytes for the warp that does: no warp waits for any but its partner. There they are added up, and
// leave from where they arrived. The consumers take their last blocks of K in turn, so that one hands over under the other's products.
#include "kernels/cuda/gemm/tile_loads.h"
#include "kernels/gemm/rows/paired_k.h"

namespace tilewave {
namespace {

constexpr Tile kTile = kPairedKTiles[0];
constexpr int kTileM = static_cast<int>(kTile.m), kTileN = static_cast<int>(kTile.n);
constexpr int kStages = paired_k_stages(kTile), kConsumers = 2, kWarps = kPairedWarps, kStrips = kPairedStrips;
constexpr int kInTurn = kStages - 1;         // of K's last blocks: what loads them waits for none of these
constexpr int kThreads = (kWarps + 2) * 32;  // the consumers' come first

using Share = float4[kShare / 4][32];  // a warp's, [4 sums at a time][thread][4]

struct SharedStorage {
  OperandStage<kTileN, kTileM> stages[kStages];
  union {
    Share handed_over[kWarps];
    std::byte strips[kWarps][kStrips][kStripBytes];
  };
  alignas(1024) Mbarrier full[kStages];
  Mbarrier empty[kStages];
  Mbarrier arrived[kWarps];  // what is handed over to a warp
  LoadsBegun loads;
};
static_assert(sizeof(SharedStorage) == paired_k_shared_bytes(kTile), "the plan knows what a block needs");
static_assert(kTileN == kConsumers * kBox && kTileM == 2 * kShareColumns, "a warp has two shares");

template <class P>
__global__ void __launch_bounds__(kThreads, 1) paired_k(const __grid_constant__ WarpgroupGemm gemm) {
  extern __shared__ __align__(1024) std::byte storage[];
  auto& shared = storage_in<SharedStorage>(storage);
  const int rank = of_warp(static_cast<int>(cluster_rank())), warp = warp_rank();
  const TileAt tile = gemm.raster(static_cast<int>(blockIdx.x / 2));
  const int row = tile.n * kTileN, col = tile.m * kTileM, own_col = col + rank * kShareColumns;
  const int blocks = (gemm.blocks_k + 1) / 2, first = rank * blocks;  // of K; one beyond it comes as zeros

  if (warp == kWarps) {  // The producer. It fills the ring before anybody waits for anybody.
    const auto load = [&](int stage, int block) {
      load_stage(shared.stages[stage], gemm, shared.full[stage], (first + block) * kBox, row, col);
      shared.loads.set(block + 1);
    };
    const bool leads = elect_lane();
    if (leads) {
      prefetch_map(gemm.rows);
      prefetch_map(gemm.cols);
      shared.loads.set(0);
      mbarrier_init(shared.full, 1);
      mbarrier_init(shared.empty, kConsumers);
      mbarrier_init(shared.arrived, 1);
      for (Mbarrier& barrier : shared.arrived) mbarrier_arrive_expecting(barrier, sizeof(Share));
      mbarrier_init_fence();
      wait_for_previous_kernel();
      for (int block = 0; block < min(kStages, blocks); ++block) load(block, block);
    }
    __syncwarp();
    __syncthreads();
    cluster_meet();
    if (leads) {
      RingPosition<kStages> at;
      for (int block = kStages; block < blocks; ++block, at.advance()) {
        mbarrier_wait(shared.empty[at.stage], at.parity);
        load(at.stage, block);
      }
    }
    return;
  }
  if (warp < kWarps) bring_first_blocks<kWarps * 32>(gemm, static_cast<int>(threadIdx.x), 2, first * kBox);
  __syncthreads();
  cluster_meet();  // the other block's barriers are there too
  wait_for_previous_kernel();
  if (warp > kWarps) {  // What sums will be added to comes into L2.
    if (gemm.epilogue.accumulate) bring_tile_of_d<kShareColumns, kTileN>(shared.loads, gemm, row, own_col, 0, blocks);
    return;
  }

  // A consumer: main loop.
  const int consumer = warpgroup_rank(), lane = static_cast<int>(threadIdx.x % 32);
  const bool leads = threadIdx.x % kWarpgroup == 0;
  float sums[1][kTileM / 2];  // [64, tile m]
  RingPosition<kStages> at;
  int previous = 0;
  const int waits_at = consumer > 0 ? max(blocks - kInTurn, 0) : -1, passes_at = consumer == 0 ? blocks - 1 : -1;
  for (int block = 0; block < blocks; ++block, at.advance()) {
    if (block == waits_at) wait_for_turn(0);
    mbarrier_wait(shared.full[at.stage], at.parity);
    multiply(P{}, shared.stages[at.stage], consumer, block > 0, sums);
    if (block == passes_at) pass_turn(0);
    wgmma_wait<1>();
    if (leads && block > 0) mbarrier_arrive(shared.empty[previous]);
    previous = at.stage;
  }
  wgmma_wait<0>();

  // Exchange: half of the columns.
  Share& others = shared.handed_over[warp];
  const BlockAddress there = address_in_block(&others[0][lane], rank ^ 1), its_barrier = address_in_block(&shared.arrived[warp], rank ^ 1);
  float z[kShare];
#pragma unroll
  for (int i = 0; i < kShare; i += 4) {
    float given[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      given[j] = rank == 0 ? sums[0][kShare + i + j] : sums[0][i + j];
      z[i + j] = rank == 0 ? sums[0][i + j] : sums[0][kShare + i + j];
    }
    store_in_block(there + i / 4 * sizeof(others[0]), {given[0], given[1], given[2], given[3]}, its_barrier);
  }
  mbarrier_wait(shared.arrived[warp], 0);
#pragma unroll
  for (int i = 0; i < kShare; i += 4) {
    const float4 other = others[i / 4][lane];
    z[i] += other.x, z[i + 1] += other.y, z[i + 2] += other.z, z[i + 3] += other.w;
  }
  __syncwarp();  // the strips lie where they were

  // Epilogue.
  WarpStrips<kStrips> strips = {.first = shared.strips[warp][0], .lane = lane};
  const ShareAt share = {.row = row + warp * kStripRows, .col = own_col};
  if (share.row >= gemm.epilogue.rows || share.col >= gemm.epilogue.cols) return;
  if (gemm.epilogue.d.dtype == DType::f32) {
    strips.put(gemm.epilogue.d_map, share, z, gemm.epilogue.accumulate);
  } else {
    strips.template put<typename P::T>(strips.next(), gemm.epilogue.d_map, share, z);
  }
  wait_boxes_read<0>();
}

}  // namespace

void launch_paired_k(CudaQueue& queue, const GemmArgs& args, const GemmPlan& plan) {
  WarpgroupGemm gemm = warpgroup_gemm(args, plan);
  gemm.raster = Raster::of(gemm.tiles_m, gemm.tiles_n, 1);
  with_gradient_product(gemm, [&]<class P>(P) {
    if constexpr (kMakesGradient<P>) launch_clusters(queue, "paired_k", paired_k<P>, gemm, plan.blocks, kThreads, sizeof(SharedStorage));
  });
}

}  // namespace tilewave
