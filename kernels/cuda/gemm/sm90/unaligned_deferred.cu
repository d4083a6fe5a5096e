// Adds to persistent_deferred_store: rows that start on any element. A tile's rows are of one residue, whose tensor map begins up to 7
// elements early, and the column operand is read by a row coordinate that moves along. Where the rows are the row operand's, K begins
// early, where the column operand is zeros; what lies there is cleared in shared memory before it is multiplied, since it may be no number.
// Where they are D's, its columns begin early: whole words are stored as ever, and of those that a row shares with its neighbours its own
// elements alone. Tiles that whole waves leave are taken in parts of K, whose sums a second kernel adds in order.
#include "kernels/cuda/gemm/sm90/kernel.h"
#include "kernels/cuda/gemm/sm90/packed_sums.h"
#include "kernels/gemm/facts/with_tile.h"
#include "kernels/gemm/sm90/unaligned_deferred.h"

namespace tilewave {
namespace {

// D's rows in memory, or those of one residue.
struct PackedTarget {
  std::byte* data = nullptr;
  std::int64_t ld = 0;
  int rows = 0;
  OwnColumns own;
};

// Packed sums, and where they go as they are.
template <int kColumns>
struct PackedAccumulators : PackedWords<kColumns, 16> {
  using PackedWords<kColumns, 16>::words;
  std::byte* to = nullptr;  // in D, the thread's first row and, once a quad has transposed, its first column
  int rows = 0, cols = 0;   // of D from there on
  bool first_whole = true;  // whether the thread's first 8 columns are the row's own

  __device__ __forceinline__ void aim(const PackedTarget& target, int warp_row, int tile_col) {
    const int row = warp_row + static_cast<int>(threadIdx.x % 32 / 4), col = tile_col + static_cast<int>(threadIdx.x % 4) * 8;
    to = target.data + 2 * (row * target.ld + col);
    rows = target.rows - row;
    cols = target.own.end - col;
    first_whole = col >= target.own.first_whole();
  }
  // Stores the words of 8 columns that are the row's own.
  __device__ __forceinline__ void store_due(std::int64_t ld, int stages) {
    this->for_due(stages, [&](int g, int h, const unsigned(&w)[4]) { store(ld, g, h, w); });
  }
  __device__ __forceinline__ void store_all(std::int64_t ld) {
    this->for_all([&](int g, int h, const unsigned(&w)[4]) { store(ld, g, h, w); });
  }

  // The row's own columns of the words that it shares with the rows before and after it.
  __device__ __forceinline__ void store_ends(const PackedTarget& target, int tile_col) const {
    const int pair = static_cast<int>(threadIdx.x % 4) * 2;
    if (target.own.whole(tile_col) && tile_col + kColumns <= target.own.end_whole()) return;
#pragma unroll
    for (int g = 0; g < kColumns / 8; ++g) {
      const int col = tile_col + 8 * g;
      if (target.own.whole(col) || col >= target.own.end) continue;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int h = i / 2, element = pair + i % 2;
        auto* const row = reinterpret_cast<unsigned short*>(to + 16 * h * target.ld + 16 * g) - 4 * pair;
        if (8 * h < rows && target.own.has(col + element)) row[element] = static_cast<unsigned short>(words[2 * g + h] >> 16 * (i % 2));
      }
    }
  }

 private:
  __device__ __forceinline__ void store(std::int64_t ld, int g, int h, const unsigned (&w)[4]) const {
    if (8 * h < rows && 8 * g + 8 <= cols && (g > 0 || first_whole)) {
      *reinterpret_cast<uint4*>(to + 16 * h * ld + 16 * g) = {w[0], w[1], w[2], w[3]};
    }
  }
};

template <int kM, int kN>
struct Config : Cta<kM, kN, kUnalignedDeferredConsumers> {
  static constexpr int kStages = unaligned_deferred_stages({kM, kN});

  struct SharedStorage {
    OperandStage<kN, kM> stages[kStages];
    alignas(1024) Ring<kStages> ring;
  };
  static_assert(sizeof(SharedStorage) == unaligned_deferred_shared_bytes({kM, kN}), "the plan knows what a block needs");
  static_assert(kN == kUnalignedDeferredConsumers * kBox, "a consumer takes 64 rows");
};

struct Residue {
  CUtensorMap rows;  // of the row operand
  PackedTarget d;
  int k = 0, columns = 0;  // elements that K or D's columns begin early
  int k_tiles = 0;         // of 64, what is early included
};
struct ResidueGemm {
  CUtensorMap cols;
  Residue of[kMaxResidues];
  std::int64_t d_ld = 0;  // from one row of a residue to the next
  int residues = 1;       // that have rows
  int cluster = 1;
  Factor alpha;
  int whole_tiles = 0, items = 0, split = 1;  // an item is a tile, or one of `split` parts of its K
  float4* partials = nullptr;                 // [parts of tiles][consumers' warps][tile m / 8][lanes]: as a part's threads hold them
  Raster raster;

  __device__ __forceinline__ void prefetch_maps() const {
    prefetch_tensor_map(cols);
    for (int residue = 0; residue < residues; ++residue) prefetch_tensor_map(of[residue].rows);
  }
};

// Where a warp's sums of a part lie.
__device__ __forceinline__ float4* partials_of(const ResidueGemm& gemm, int part_item, int warp, int tile_m) {
  return gemm.partials + (std::int64_t{part_item} * 4 * kUnalignedDeferredConsumers + warp) * (tile_m / 8 * 32) + threadIdx.x % 32;
}

// Zeros for the first elements of a consumer's 64 rows, in the box where K begins.
__device__ __forceinline__ void clear_early(std::byte* box, int elements, int consumer) {
  const int row = static_cast<int>(threadIdx.x) % kWarpgroup;
  if (row < kBox) {
    auto* const first = reinterpret_cast<unsigned short*>(box + row * 128 + row % 8 * 16);  // as TMA swizzles
    for (int i = 0; i < elements; ++i) first[i] = 0;
    fence_proxy_async_shared();
  }
  sync_warpgroup(consumer);
}

template <class C, class P>
__global__ void __launch_bounds__(C::kThreads, 1) unaligned_deferred(const __grid_constant__ ResidueGemm gemm) {
  auto& shared = shared_storage<C>();
  constexpr int kTileM = C::kTileM, kTileN = C::kTileN;

  const int first = static_cast<int>(blockIdx.x), step = static_cast<int>(gridDim.x);
  run_prologue<C, Prologue{.readers = C::kConsumers, .prefetches_k_tiles = false}>(shared, gemm);
  if (becomes_producer<C>()) {
    if (elect_lane_of(0)) {
      Loader<C> loader{shared};
      for (int item = first; item < gemm.items; item += step) {
        const TileSlice take = tile_by_tile(item, gemm.whole_tiles, gemm.split);
        const TileAt tile = gemm.raster(take.tile);
        const TileOfResidue down = tile_of_residue(tile.n, gemm.residues, kTileN);
        const Residue& residue = gemm.of[down.residue];
        const int col = tile.m * kTileM - residue.columns;
        const StagesOfK k = stages_of_slice(residue.k_tiles, take.part, item < gemm.whole_tiles ? 1 : gemm.split);
        loader(k.begin, k.end, [&](int k_tile, auto& stage, Mbarrier& full) {
          mbarrier_arrive_expecting(full, stage.kBytes);
          load_boxes(stage.rows, residue.rows, P::kRows, full, k_tile * kBox, down.row);
          load_boxes(stage.cols, gemm.cols, P::kCols, full, k_tile * kBox - residue.k, col);
        });
      }
    }
  } else {  // A consumer.
    const auto [consumer, thread, warp, lane] = ConsumerThread();
    RingPosition<C::kStages> at;
    PackedAccumulators<kTileM> packed;
    for (int item = first; item < gemm.items; item += step) {
      const bool whole = item < gemm.whole_tiles;
      const TileSlice take = tile_by_tile(item, gemm.whole_tiles, gemm.split);
      const TileAt tile = gemm.raster(take.tile);
      const TileOfResidue down = tile_of_residue(tile.n, gemm.residues, kTileN);
      const Residue& residue = gemm.of[down.residue];
      const StagesOfK k = stages_of_slice(residue.k_tiles, take.part, whole ? 1 : gemm.split);
      const int stages = k.end - k.begin;
      if (residue.k > 0 && k.begin == 0) {
        shared.ring.wait_full(at);
        clear_early(shared.stages[at.stage].rows[consumer], residue.k, consumer);
      }

      // Main loop, and the stores of the tile before.
      float accumulators[1][kTileM / 2];  // [64, tile m]
      const auto issue = [&](int k_tile) { multiply(P{}, shared.stages[at.stage], consumer, k_tile > 0, accumulators); };
      const auto release = [&](int stage) { shared.ring.release_by(thread == 0, stage); };
      const auto store_due = [&](int) { packed.store_due(gemm.d_ld, stages); };
      const int last_stage = shared.ring.multiply_k_tiles(at, 0, stages, issue, release, NoStep{}, store_due);
      end_mmas(gemm.alpha, accumulators);
      release(last_stage);

      // Epilogue.
      if (whole) {
        packed.aim(residue.d, down.row + warp * kSubtileRows, tile.m * kTileM);
        packed.take(typename P::T{}, accumulators[0]);
        packed.store_ends(residue.d, tile.m * kTileM);
      } else {
        float4* const to = partials_of(gemm, item - gemm.whole_tiles, warp, kTileM);
#pragma unroll
        for (int i = 0; i < kTileM / 8; ++i) to[i * 32] = four_of(accumulators[0] + 4 * i);
      }
    }
    packed.store_all(gemm.d_ld);
  }
}

// Adds the parts of a tile's K in order: a warp the sums of one, a block those of one consumer.
template <class T, int kTileM>
__global__ void __launch_bounds__(kWarpgroup) reduce_partials(const __grid_constant__ ResidueGemm gemm) {
  const int cut = static_cast<int>(blockIdx.x) / kUnalignedDeferredConsumers,
            consumer = static_cast<int>(blockIdx.x) % kUnalignedDeferredConsumers;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const TileAt tile = gemm.raster(gemm.whole_tiles + cut);
  const TileOfResidue down = tile_of_residue(tile.n, gemm.residues, kUnalignedDeferredConsumers * kBox);
  const Residue& residue = gemm.of[down.residue];
  float accumulators[kTileM / 2] = {};
  for (int part = 0; part < gemm.split; ++part) {
    const float4* const from = partials_of(gemm, cut * gemm.split + part, consumer * 4 + warp, kTileM);
#pragma unroll
    for (int i = 0; i < kTileM / 8; ++i) {
      const float4 more = from[i * 32];
      add_four(accumulators + 4 * i, more);
    }
  }
  PackedAccumulators<kTileM> packed;
  packed.aim(residue.d, down.row + consumer * kBox + warp * kSubtileRows, tile.m * kTileM);
  packed.take(T{}, accumulators);
  packed.store_all(gemm.d_ld);
  packed.store_ends(residue.d, tile.m * kTileM);
}

ResidueGemm residue_gemm(const GemmCall& call) {
  const GemmArgs& args = call.args;
  const GemmProblem& problem = call.problem;
  const ResidueTiles tiles = residue_tiles(problem, call.plan.tile);
  const bool along_m = args.d_major == Major::m;
  const ConstMatrixView rows = along_m ? args.b : args.a;
  ResidueGemm gemm = {.cols = make_tensor_map(along_m ? args.a : args.b, kBox),
                      .d_ld = args.d.ld * tiles.residues,
                      .residues = static_cast<int>(tiles.used),
                      .alpha = Factor::of(args.alpha),
                      .whole_tiles = static_cast<int>(call.plan.whole_tiles),
                      .items = static_cast<int>(call.plan.items()),
                      .split = call.plan.split,
                      .partials = static_cast<float4*>(args.workspace),
                      .raster = raster_in_bands(call, tiles.across, tiles.down)};
  for (std::int64_t i = 0; i < tiles.used; ++i) {
    const RowsOfResidue operand = rows_of_residue(rows, tiles.residues, i), d = rows_of_residue(args.d, tiles.residues, i);
    gemm.of[i] = {.rows = make_tensor_map(operand.view, kBox),
                  .d = {.data = static_cast<std::byte*>(const_cast<void*>(d.view.data)),
                        .ld = d.view.ld,
                        .rows = static_cast<int>(d.view.rows),
                        .own = {.begin = static_cast<int>(d.shift), .end = static_cast<int>(d.view.cols)}},
                  .k = static_cast<int>(operand.shift),
                  .columns = static_cast<int>(d.shift),
                  .k_tiles = static_cast<int>(ceil_div(operand.view.cols, kBox))};
  }
  return gemm;
}

}  // namespace

void launch_unaligned_deferred(CudaQueue& queue, const GemmCall& call) {
  const ResidueGemm gemm = residue_gemm(call);
  with_tile<kUnalignedDeferredTiles>("unaligned_deferred", call.plan.tile, [&]<int kM, int kN>() {
    using C = Config<kM, kN>;
    const auto with_type = [&]<class T>(T) {
      using AlongK = MmaForm<T, Fastest::k, Fastest::k, false>;
      using Across = MmaForm<T, Fastest::k, Fastest::other, false>;
      const bool cols_along_k = (call.args.d_major == Major::m ? call.args.a_major : call.args.b_major) == Major::k;
      launch_kernel<C>(queue, "unaligned_deferred", cols_along_k ? unaligned_deferred<C, AlongK> : unaligned_deferred<C, Across>, gemm,
                       call.plan.blocks);
      if (gemm.whole_tiles < gemm.raster.tiles) {
        reduce_partials<T, kM>
            <<<kUnalignedDeferredConsumers* static_cast<unsigned>(gemm.raster.tiles - gemm.whole_tiles), kWarpgroup, 0, stream_of(queue)>>>(
                gemm);
        TW_CUDA_LAUNCHED("unaligned_deferred, the parts' sum");
      }
    };
    with_half(call.args.a.dtype, "unaligned_deferred", with_type);
  });
}

}  // namespace tilewave
