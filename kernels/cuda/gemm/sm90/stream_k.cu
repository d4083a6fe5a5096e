// Adds to persistent_data_parallel: no block waits for another's last tile. While all blocks have a whole tile they take whole ones; the
// K of the tiles that are left is cut into one equal share a block, and a share's end goes on in the next block. What a block has of a
// tile that another one ends, it leaves in the workspace, and goes on; the one that ends the tile adds all that was left of it, which its
// producer brings through the ring as soon as it is there. fp32 sums need less: a tile's first part goes straight into D, and the last
// one is added there. Parts are added up in one order, so the result depends on no timing. Whole tiles come first, while the blocks are in
// step. Which parts of which tiles a block has is kernels/gemm/sm90/stream_k_parts.h's; a wait goes to a block of a lower number only.
// Two blocks one above the other in D do all this as a pair, each for its own rows, and load their columns for both.
#include "kernels/cuda/gemm/sm90/kernel.h"
#include "kernels/cuda/prim/flag.h"
#include "kernels/gemm/facts/with_tile.h"
#include "kernels/gemm/sm90/stream_k.h"
#include "kernels/gemm/sm90/stream_k_parts.h"

namespace tilewave {
namespace {

template <int kM, int kN>
struct Config : Cta<kM, kN, kStreamKConsumers> {
  using Cta<kM, kN, kStreamKConsumers>::kTile, Cta<kM, kN, kStreamKConsumers>::kConsumers;
  static constexpr int kStages = stream_k_stages(kTile), kStagingBuffers = kStreamKStagingBuffers;

  struct SharedStorage {
    OperandStage<kN, kM> stages[kStages];
    std::byte staging[kStreamKWarps][kStagingBuffers * kStagingBytes];  // a warp's own
    Ones ones;
    alignas(1024) Ring<kStages> ring;
  };
  static_assert(sizeof(SharedStorage) == stream_k_shared_bytes(kTile), "the plan knows what a block needs");
  static_assert(kN == kConsumers * kBox, "a consumer takes 64 rows");
};

// A share of every warp's sums, as its threads hold them, four at a time.
struct PartialSubtile {
  float4 accumulators[kStreamKWarps][kSubtileValues / 4][32];

  __device__ __forceinline__ void write_partials(int warp, int lane, const float* own) {
#pragma unroll
    for (int i = 0; i < kSubtileValues; i += 4) __stcg(&accumulators[warp][i / 4][lane], four_of(own + i));
  }
  __device__ __forceinline__ void add_to(int warp, int lane, float* own) const {
#pragma unroll
    for (int i = 0; i < kSubtileValues; i += 4) add_four(own + i, accumulators[warp][i / 4][lane]);
  }
};

struct StreamKGemm : WarpgroupGemm {
  StreamKWork work;                    // a pair's is one block's
  bool by_engine = false;              // D is stored, or added to, by TMA
  bool first_in_d = false;             // a tile's first part goes straight into D
  unsigned* left = nullptr;            // [blocks]: warps whose sums are there, until the block that wants them has seen it
  PartialSubtile* partials = nullptr;  // [blocks][shares]: of the part that another block ends
  float* row_sums = nullptr;           // [blocks][tile n]
};

// Brings what others have left of the tile that a part ends, a share a stage; of what is in D by then, an empty stage. One thread's.
template <class C>
__device__ __forceinline__ void load_left(typename C::SharedStorage& shared, const StreamKGemm& gemm, const StreamKSlice& k_slice,
                                          RingPosition<C::kStages>& at) {
  static_assert(sizeof(PartialSubtile) <= sizeof(shared.stages[0]));
  for (int other = k_slice.partials; other > 0; --other) {
    const int block = static_cast<int>(blockIdx.x) - other * gemm.cluster;
    const bool in_d = gemm.first_in_d && other == k_slice.partials;
    wait_for_added(gemm.left + block, kStreamKWarps);
    for (int subtile = 0; subtile < (in_d ? 1 : C::kSubtiles); ++subtile, at.advance()) {
      Mbarrier& full = shared.ring.full[at.stage];
      shared.ring.wait_empty(at);
      if (in_d) {
        mbarrier_arrive(full);
      } else {
        mbarrier_arrive_expecting(full, sizeof(PartialSubtile));
        tma_load_1d(&shared.stages[at.stage], gemm.partials + static_cast<std::int64_t>(block) * C::kSubtiles + subtile,
                    sizeof(PartialSubtile), full);
      }
    }
  }
}

// The producer's thread: its slices' k_tiles, and what others have left of the tiles that end in them.
template <class C>
__device__ __forceinline__ void load_slices(typename C::SharedStorage& shared, const StreamKGemm& gemm, StreamKSlices& k_slices) {
  StreamKSlice k_slice;
  Loader<C> loader{shared};
  while (k_slices.next(k_slice)) {
    const TileAt tile = own_tile(gemm, k_slice.tile);
    int own = k_slice.start;
    loader(k_slice.begin, k_slice.end, [&](int, auto& stage, Mbarrier& full) {
      load_stage_of_cluster(stage, gemm, full, own * kBox, tile.n * C::kTileN, tile.m * C::kTileM, cluster_rank());
      own = k_slice.after(own);
    });
    load_left<C>(shared, gemm, k_slice, loader.at);
  }
  shared.ring.wait_for_readers(gemm.cluster, loader.at);
}

// A consumer adds what others have left of the tile that its slice ends, in the order of K. What is in D by then is waited for alone.
template <class C>
__device__ __forceinline__ void add_left(typename C::SharedStorage& shared, const StreamKGemm& gemm, const StreamKSlice& k_slice,
                                         const ConsumerThread& self, RingPosition<C::kStages>& at, float (&accumulators)[C::kTileM / 2]) {
  const auto release = [&](int stage) { shared.ring.release_to_cluster(stage, gemm.cluster, self.thread); };
  for (int other = k_slice.partials; other > 0; --other) {
    if (gemm.first_in_d && other == k_slice.partials) {
      shared.ring.wait_full(at);
      fence_proxy_async();
      sync_warpgroup(self.consumer);
      release(at.stage);
      at.advance();
      continue;
    }
#pragma unroll
    for (int subtile = 0; subtile < C::kSubtiles; ++subtile, at.advance()) {
      shared.ring.wait_full(at);
      reinterpret_cast<const PartialSubtile&>(shared.stages[at.stage])
          .add_to(self.warp, self.lane, accumulators + subtile * kSubtileValues);
      sync_warpgroup(self.consumer);
      release(at.stage);
    }
  }
}

// Of the warp's 16 rows from `row` on, 64 columns at a time: their code stands once. T is the operands' type.
template <class C, class T>
__device__ __forceinline__ void finish_slice(const StreamKGemm& gemm, WarpStaging<C::kStagingBuffers>& staging,
                                             const float (&accumulators)[C::kTileM / 2], const SubtileAt& first, bool add) {
  const WarpgroupEpilogue& epilogue = gemm.epilogue;
  for (int subtile = 0; subtile < C::kSubtiles; ++subtile) {
    const SubtileAt subtile_at = {.row = first.row, .col = first.col + subtile * kSubtileColumns};
    if (first.row >= epilogue.rows || subtile_at.col >= epilogue.cols) return;
    float z[kSubtileValues];
    with_register_index<C::kSubtiles>(subtile, [&](int of) {
#pragma unroll
      for (int i = 0; i < kSubtileValues; ++i) z[i] = accumulators[of * kSubtileValues + i];
    });
    if (!gemm.by_engine) {
      finish_elements(epilogue, staging.first, subtile_at, z);
    } else {
      put_accumulators<T>(epilogue, staging, subtile_at, z, add);
    }
  }
}

template <class C, bool kSums, class P>
__global__ void __launch_bounds__(C::kThreads, 1) stream_k(const __grid_constant__ StreamKGemm gemm) {
  auto& shared = shared_storage<C>();
  constexpr int kTileM = C::kTileM, kTileN = C::kTileN;
  const WarpgroupEpilogue& epilogue = gemm.epilogue;

  constexpr Prologue kPrologue = {
      .readers = C::kConsumers, .shares_loads = true, .fills_ones = kSums, .prefetches_k_tiles = false, .meets = Meeting::cluster};
  run_prologue<C, kPrologue>(shared, gemm);
  StreamKSlices k_slices(gemm.work, cluster_of_cta(gemm.cluster));
  if (becomes_producer<C>()) {
    if (elect_lane_of(0)) load_slices<C>(shared, gemm, k_slices);
  } else {
    const ConsumerThread self;
    const auto [consumer, thread, warp, lane] = self;
    WarpStaging<C::kStagingBuffers> staging = {.first = shared.staging[warp], .arrived = nullptr, .lane = lane};
    const auto release = [&](int stage) {  // to every producer that writes here
      shared.ring.release_to_cluster(stage, gemm.cluster, thread);
    };
    const auto row_sums_of = [&](int block) { return gemm.row_sums + block * kTileN + consumer * kBox; };

    // Sums that others want are told of under the next products, when they will have arrived, and before this block waits for others.
    bool unsignaled = false;
    const auto signal = [&] {
      if (unsignaled) add_to_flag_after_tma_stores(gemm.left + blockIdx.x);
      unsignaled = false;
    };
    StreamKSlice k_slice;
    RingPosition<C::kStages> at;
    while (k_slices.next(k_slice)) {
      const TileAt tile = own_tile(gemm, k_slice.tile);
      const int row = tile.n * kTileN + consumer * kBox, col = tile.m * kTileM;

      const auto run_k_slice = [&](auto mma_form) {
        // Main loop.
        float accumulators[1][kTileM / 2];  // [64, tile m]
        float row_sums[1][4];               // [64, 8]
        const auto issue = [&](int block) {
          multiply(mma_form, shared.stages[at.stage], shared.ones, consumer, block > k_slice.begin, accumulators, row_sums);
        };
        const auto signal_early = [&](int block) {
          if (block == k_slice.begin + 2) signal();
        };
        const int last_stage = shared.ring.multiply_k_tiles(at, k_slice.begin, k_slice.end, issue, release, NoStep{}, signal_early);
        end_mmas(epilogue.alpha, accumulators);
        release(last_stage);
        signal();

        // Epilogue: the sums are left to the block that ends the tile, or what others have left is added to them.
        const bool ends_tile = k_slice.end == gemm.k_tiles, into_d = ends_tile || (gemm.first_in_d && k_slice.begin == 0);
        unsignaled = !ends_tile;
        if (!into_d) {
          PartialSubtile* const to = gemm.partials + static_cast<std::int64_t>(blockIdx.x) * C::kSubtiles;
#pragma unroll
          for (int subtile = 0; subtile < C::kSubtiles; ++subtile)
            to[subtile].write_partials(warp, lane, accumulators[0] + subtile * kSubtileValues);
        }
        add_left<C>(shared, gemm, k_slice, self, at, accumulators[0]);
        if constexpr (mma_form.kSumsRows) {
          const auto block = static_cast<int>(blockIdx.x);
          for_each_row_sum(row_sums[0], [&](int own, float sum) {
            if (!ends_tile) {
              row_sums_of(block)[own] = sum;
              return;
            }
            for (int other = k_slice.partials; other > 0; --other) sum += __ldcg(row_sums_of(block - other * gemm.cluster) + own);
            store_bias_gradient(epilogue, row + own, sum);
          });
        }
        const bool to_first = gemm.first_in_d && k_slice.partials > 0;
        const SubtileAt first = {.row = row + warp % 4 * kSubtileRows, .col = col};
        if (into_d) finish_slice<C, typename P::T>(gemm, staging, accumulators[0], first, epilogue.accumulate || to_first);
      };
      if (kSums && tile.m == 0) {
        run_k_slice(MmaForm<typename P::T, P::kRows, P::kCols, kSums>{});
      } else {
        run_k_slice(P{});
      }
    }
    signal();
    tma_store_wait_read<0>();
  }
}

}  // namespace

void launch_stream_k(CudaQueue& queue, const GemmCall& call) {
  StreamKGemm gemm = {warpgroup_gemm(call)};
  // Rows are summed in the first column. Where that begins every row of the raster, shares of equal time repeat after some tiles.
  const bool one_group = gemm.raster.group == gemm.tiles_m;
  const auto shared = static_cast<int>(stream_k_tiles(gemm.raster.tiles, gemm.clusters));
  gemm.work =
      StreamKWork::of(gemm.raster.tiles, shared, gemm.k_tiles, gemm.clusters, gemm.raster.group, call.args.bias_gradient && one_group);
  const WarpgroupEpilogue& epilogue = gemm.epilogue;
  gemm.by_engine = epilogue.through_staging && !epilogue.has_side && epilogue.d.mapped_cols == epilogue.cols;
  gemm.first_in_d = gemm.by_engine && epilogue.d.dtype == DType::f32;
  gemm.left = flags_of(queue, call.plan.blocks);
  gemm.partials = static_cast<PartialSubtile*>(call.args.workspace);
  gemm.row_sums = reinterpret_cast<float*>(gemm.partials + call.plan.blocks * call.plan.tile.m / kSubtileColumns);
  with_tile<kStreamKTiles>("stream_k", call.plan.tile, [&]<int kM, int kN>() {
    using C = Config<kM, kN>;
    with_mma_form_of(gemm, [&]<class P>(P) {
      launch_kernel<C>(queue, "stream_k", call.args.bias_gradient ? stream_k<C, true, P> : stream_k<C, false, P>, gemm, call.plan.blocks);
    });
  });
}

}  // namespace tilewave
