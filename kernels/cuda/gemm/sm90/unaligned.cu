// Adds to persistent_data_parallel: a row operand whose rows, along K, start on any element. Rows of K of one residue come through a map
// that begins up to 7 elements early, so K is taken residue by residue, of both operands, into the same sums. The shift, which differs
// between residues, goes on the way to the tensor cores: wgmma takes its row operand from registers, and a thread picks its elements
// from where they are. Columns of another row never reach a product.
#include <cstddef>

#include "kernels/cuda/gemm/sm90/kernel.h"
#include "kernels/gemm/facts/with_tile.h"
#include "kernels/gemm/sm90/unaligned.h"

namespace tilewave {
namespace {

template <int kM, int kN>
struct Config : Cta<kM, kN, kRealignedConsumers, 24, 240> {
  static constexpr int kStages = realigned_stages({kM, kN}), kStagingBuffers = kRealignedStagingBuffers;

  struct Stage {
    OperandStage<kN, kM> boxes;
    alignas(1024) std::byte edge[kRealignedEdgeBytes];  // [64 k, 8 columns after the rows' last]
  };
  struct SharedStorage {
    Stage stages[kStages];
    std::byte staging[kRealignedWarps][kStagingBuffers * kStagingBytes];  // a warp's own
    Ones ones;
    alignas(1024) Ring<kStages> ring;
  };
  static_assert(sizeof(SharedStorage) == unaligned_shared_bytes({kM, kN}), "the plan knows what a block needs");
  static_assert(kN == kRealignedConsumers * kBox, "a consumer takes 64 rows");
};

struct ResidueOfK {
  CUtensorMap rows, edge, cols;
  int shift = 0;    // elements that a row begins early
  int k_tiles = 0;  // of 64
};
struct RealignedGemm {
  ResidueOfK of[kMaxResidues];
  int residues = 1;               // of K, that have any
  int k_tiles = 0;                // of all
  int cluster = 1, clusters = 1;  // as WarpgroupGemm has them
  DType operand_dtype = DType::bf16;
  Raster raster;
  WarpgroupEpilogue epilogue;
};

__device__ __forceinline__ std::uint32_t load_word(unsigned address) {
  std::uint32_t word;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(address) : "memory");
  return word;
}

// A thread has two neighbouring rows of D, not two that are 8 apart: where the shift is even, one word of shared memory has both.
inline constexpr AccumulatorRows kRows = AccumulatorRows::neighbours;

// A thread's part of a stage's rows as it comes from there: words of two rows of one k, and of the next. They are put together only when
// no product is running any more, since ptxas serialises products whose registers are made beside others.
struct LoadedRows {
  static constexpr int kPairs = kBox / 4;
  static constexpr unsigned kLow = 0x5410, kHigh = 0x7632;
  std::uint32_t first[kPairs], second[kPairs];
  unsigned halves;  // of the words that have the upper row, for __byte_perm; the other row has the other ones

  __device__ __forceinline__ void pack(std::uint32_t (&fragments)[kPairs / 4][4]) const {
#pragma unroll
    for (int i = 0; i < kPairs; ++i)
      fragments[i / 4][i % 4] = __byte_perm(first[i], second[i], i % 2 == 0 ? halves : halves ^ (kLow ^ kHigh));
  }
};

// Where that is, of a warp's 16 rows: k of 2 (lane % 4) and the next of every 8, of rows 2 (lane / 4) and the next. By an odd shift the
// two rows lie in two words.
template <class C>
struct ShiftedRows {
  static constexpr auto kEdge = static_cast<unsigned>(offsetof(typename C::Stage, edge));
  unsigned first[2], second[2];
  bool odd;

  __device__ __forceinline__ void aim(unsigned shift) {
    const unsigned warp = threadIdx.x / 32 - 4, lane = threadIdx.x % 32, k = lane % 4 * 2;
    odd = shift % 2 != 0;
#pragma unroll
    for (int word = 0; word < 2; ++word) {
      const unsigned col = warp * kSubtileRows + lane / 4 * 2 + shift / 2 * 2 + 2 * word;
      first[word] = in_stage(k, col, C::kTile.n, kEdge);
      second[word] = in_stage(k + 1, col, C::kTile.n, kEdge);
    }
  }
  __device__ __forceinline__ void load(const typename C::Stage& stage, LoadedRows& loaded) const {
    const unsigned here = shared_address(&stage);
    const auto load_words = [&](int word) {
      const unsigned step = next_8_k(first[word], kEdge);
      unsigned at = here + first[word], at_next = here + second[word];
#pragma unroll
      for (int i = word; i < loaded.kPairs; i += 2, at += step, at_next += step) {
        loaded.first[i] = load_word(at);
        loaded.second[i] = load_word(at_next);
      }
    };
    load_words(0);
    if (odd) {
      load_words(1);
    } else {
#pragma unroll
      for (int i = 0; i < loaded.kPairs; i += 2) {
        loaded.first[i + 1] = loaded.first[i];
        loaded.second[i + 1] = loaded.second[i];
      }
    }
    loaded.halves = odd ? LoadedRows::kHigh : LoadedRows::kLow;
  }
};

// A share goes through the warp's strip where the engine can store all of its columns, else straight from registers.
template <class T, int kStagingBuffers>
__device__ __forceinline__ void finish(const WarpgroupEpilogue& e, WarpStaging<kStagingBuffers, kRows>& staging, const SubtileAt& at,
                                       const float (&z)[kSubtileValues]) {
  if (min(at.col + kSubtileColumns, e.cols) <= e.d.mapped_cols) return put_accumulators<T>(e, staging, at, z, e.accumulate);
#pragma unroll
  for (int i = 0; i < kSubtileValues; ++i) {
    const std::int64_t row = at.row + staging.row_of(i % 4 / 2);
    const int col = at.col + i / 4 * 8 + staging.lane % 4 * 2 + i % 2;
    if (row >= e.rows || col >= e.cols) continue;
    const std::int64_t place = row * e.d.ld + col;
    store_element(e.d.data, e.d.dtype, place, e.accumulate ? load_element(e.d.data, e.d.dtype, place) + z[i] : z[i]);
  }
}

// The producer's thread: of each tile, K residue by residue.
template <class C>
__device__ __forceinline__ void load_residues(typename C::SharedStorage& shared, const RealignedGemm& gemm) {
  Loader<C> loader{shared};
  for (int tile_index = first_tile_index(gemm); tile_index < gemm.raster.tiles; tile_index += gemm.clusters) {
    const TileAt tile = own_tile(gemm, tile_index);
    const int row = tile.n * C::kTileN, col = tile.m * C::kTileM;
    for (int i = 0; i < gemm.residues; ++i) {
      const ResidueOfK& residue = gemm.of[i];
      loader(0, residue.k_tiles, [&](int k_tile, auto& stage, Mbarrier& full) {
        const int k = k_tile * kBox;
        mbarrier_arrive_expecting(full, stage.boxes.kBytes + sizeof(stage.edge));
        load_boxes(stage.boxes.rows, residue.rows, Fastest::other, full, k, row);
        tma_load(stage.edge, residue.edge, full, row + C::kTileN, k);
        const auto everyone = static_cast<std::uint16_t>((1u << gemm.cluster) - 1u);
        for (int box = static_cast<int>(cluster_rank()); box < stage.boxes.kColBoxes; box += gemm.cluster)
          tma_load_multicast(stage.boxes.cols[box], residue.cols, full, col + box * kBox, k, everyone);
      });
    }
  }
  shared.ring.wait_for_readers(gemm.cluster, loader.at);
}

template <class C, class T, bool kSums>
__global__ void __launch_bounds__(C::kThreads, 1) unaligned(const __grid_constant__ RealignedGemm gemm) {
  auto& shared = shared_storage<C>();
  constexpr int kTileM = C::kTileM, kTileN = C::kTileN;
  const WarpgroupEpilogue& epilogue = gemm.epilogue;

  constexpr Prologue kPrologue = {.readers = C::kConsumers,
                                  .shares_loads = true,
                                  .prefetches_maps = false,
                                  .fills_ones = kSums,
                                  .prefetches_k_tiles = false,
                                  .meets = Meeting::cluster};
  run_prologue<C, kPrologue>(shared, gemm);
  if (becomes_producer<C>()) {
    if (elect_lane_of(0)) load_residues<C>(shared, gemm);
  } else {
    RingPosition<C::kStages> at;
    const int warp = static_cast<int>(threadIdx.x) / 32 - 4, consumer = warp / 4;
    const int thread = static_cast<int>(threadIdx.x) % kWarpgroup;
    for (int tile_index = first_tile_index(gemm); tile_index < gemm.raster.tiles; tile_index += gemm.clusters) {
      float accumulators[1][kTileM / 2];  // [64, tile m]
      const auto run_tile = [&](auto sums_rows) {
        // Main loop. A stage's rows are read while the stage before is multiplied.
        float row_sums[4];  // [64, 8]
        LoadedRows loaded;
        ShiftedRows<C> rows;
        int residue = 0, left = 0;
        const auto read = [&] {
          if (left == 0) {
            rows.aim(gemm.of[residue].shift);
            left = gemm.of[residue].k_tiles;
            ++residue;
          }
          --left;
          shared.ring.wait_full(at);
          rows.load(shared.stages[at.stage], loaded);
        };
        read();
        for (int block = 0; block < gemm.k_tiles; ++block) {
          std::uint32_t fragments[kBox / 16][4];
          loaded.pack(fragments);
          const int here = at.stage;
          const auto& stage = shared.stages[here].boxes;
          wgmma_fence();
#pragma unroll
          for (int part = 0; part < kBox / 16; ++part) {
            const bool add = block > 0 || part > 0;
            wgmma<T, Fastest::other, kTileM>(accumulators[0], fragments[part], operand<Fastest::other>(operand_at(stage.cols), part), add);
            if constexpr (sums_rows)
              wgmma<T, Fastest::k, 8>(row_sums, fragments[part], operand<Fastest::k>(operand_at(shared.ones.bytes), 0), add);
          }
          wgmma_commit();
          at.advance();
          if (block + 1 < gemm.k_tiles) read();
          wgmma_wait<0>();
          shared.ring.release_to_cluster(here, gemm.cluster, thread);  // to every producer that writes here
        }
        if constexpr (sums_rows) {
          for_each_row_sum<kRows>(row_sums, [&](int own, float sum) {
            store_bias_gradient(epilogue, own_tile(gemm, tile_index).n * kTileN + consumer * kBox + own, sum);
          });
        }
      };
      if (kSums && own_tile(gemm, tile_index).m == 0) {
        run_tile(std::true_type{});
      } else {
        run_tile(std::false_type{});
      }

      // Epilogue.
      scale(epilogue.alpha, accumulators);
      const TileAt tile = own_tile(gemm, tile_index);
      WarpStaging<C::kStagingBuffers, kRows> staging = {
          .first = shared.staging[warp], .arrived = nullptr, .lane = static_cast<int>(threadIdx.x % 32)};
      for_each_subtile<1>(
          epilogue, tile.n * kTileN + consumer * kBox, tile.m * kTileM, accumulators,
          [&](int, const SubtileAt& subtile, const float(&z)[kSubtileValues]) { finish<T>(epilogue, staging, subtile, z); });
    }
    tma_store_wait_read<0>();
  }
}

RealignedGemm realigned_gemm(const GemmCall& call) {
  const GemmArgs& args = call.args;
  const GemmProblem& problem = call.problem;
  const ResiduesOfK k = residues_of_k(problem);
  const bool along_m = args.d_major == Major::m;
  RealignedGemm gemm = {.residues = static_cast<int>(k.used),
                        .k_tiles = static_cast<int>(k.blocks),
                        .cluster = call.plan.cluster,
                        .clusters = static_cast<int>(call.plan.blocks / call.plan.cluster),
                        .operand_dtype = problem.operand_dtype,
                        .raster = raster_in_bands(call, call.plan.tiling.tiles_m, ceil_div(call.plan.tiling.tiles_n, call.plan.cluster)),
                        .epilogue = warpgroup_epilogue(args)};
  for (std::int64_t i = 0; i < k.used; ++i) {
    const RowsOfResidue rows = rows_of_residue(along_m ? args.b : args.a, k.residues, i);
    const RowsOfResidue cols = rows_of_residue(along_m ? args.a : args.b, k.residues, i);
    gemm.of[i] = {.rows = make_tensor_map(rows.view, kBox),
                  .edge = make_tensor_map(rows.view, kBox, BoxWidth::bytes_16),
                  .cols = make_tensor_map(cols.view, kBox),
                  .shift = static_cast<int>(rows.shift),
                  .k_tiles = static_cast<int>(ceil_div(rows.view.rows, kBox))};
  }
  return gemm;
}

}  // namespace

void launch_unaligned(CudaQueue& queue, const GemmCall& call) {
  const RealignedGemm gemm = realigned_gemm(call);
  with_tile<kUnalignedTiles>("unaligned", call.plan.tile, [&]<int kM, int kN>() {
    using C = Config<kM, kN>;
    const auto with_type = [&]<class T>(T) {
      launch_kernel<C>(queue, "unaligned", call.args.bias_gradient ? unaligned<C, T, true> : unaligned<C, T, false>, gemm,
                       call.plan.blocks);
    };
    with_half(call.args.a.dtype, "unaligned", with_type);
  });
}

}  // namespace tilewave
