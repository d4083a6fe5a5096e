// Adds to persistent_late_store: rows that start on any element. A tile's rows are of one residue, whose tensor map begins up to 7
// elements early, and the column operand is read by a row coordinate that moves along. Where the rows are the row operand's, K begins
// early, where the column operand is zeros; what lies there is cleared in shared memory before it is multiplied, since it may be no number.
// Where they are D's, its columns begin early: whole words are stored as ever, and of those that a row shares with its
// neighbours its own elements alone.
#include "kernels/cuda/gemm/packed_sums.h"
#include "kernels/cuda/gemm/warpgroup_gemm.h"
#include "kernels/gemm/rows/persistent_residues.h"

namespace tilewave {
namespace {

template <int kM, int kN>
struct Config {
  static constexpr Tile kTile = {kM, kN};
  static constexpr int kStages = late_store_stages(kTile), kConsumers = kLateStoreConsumers;
  static constexpr int kThreads = (1 + kConsumers) * kWarpgroup;
  static constexpr int kProducerRegisters = 40, kConsumerRegisters = 232;

  struct SharedStorage {
    OperandStage<kN, kM> stages[kStages];
    alignas(1024) Mbarrier full[kStages];
    Mbarrier empty[kStages];
  };
  static_assert(sizeof(SharedStorage) == persistent_late_store_shared_bytes(kTile), "the plan knows what a block needs");
  static_assert(kN == kConsumers * kBox, "a consumer takes 64 rows");
};

struct Residue {
  CUtensorMap rows;  // of the row operand
  PackedTarget d;
  int k = 0, columns = 0;  // elements that K or D's columns begin early
  int blocks_k = 0;        // of 64, what is early included
};
struct ResidueGemm {
  CUtensorMap cols;
  Residue of[kMostResidues];
  std::int64_t d_ld = 0;  // from one row of a residue to the next
  int residues = 1;       // that have rows
  int cluster = 1;
  Raster raster;
};

// Zeros for the first elements of a consumer's 64 rows, in the box where K begins.
__device__ __forceinline__ void clear_early(std::byte* box, int elements, int consumer) {
  const int row = static_cast<int>(threadIdx.x) % kWarpgroup;
  if (row < kBox) {
    auto* const first = reinterpret_cast<unsigned short*>(box + row * 128 + row % 8 * 16);  // as the copy engine swizzles
    for (int i = 0; i < elements; ++i) first[i] = 0;
    fence_shared_for_engines();
  }
  asm volatile("bar.sync %0, %1;" ::"r"(1 + consumer), "n"(kWarpgroup) : "memory");
}

template <class C, class P>
__global__ void __launch_bounds__(C::kThreads, 1) persistent_residues(const __grid_constant__ ResidueGemm gemm) {
  extern __shared__ __align__(1024) std::byte storage[];
  auto& shared = *reinterpret_cast<typename C::SharedStorage*>(storage);
  constexpr int kTileM = static_cast<int>(C::kTile.m), kTileN = static_cast<int>(C::kTile.n);

  // Prologue.
  const int first = static_cast<int>(blockIdx.x), step = static_cast<int>(gridDim.x);
  if (threadIdx.x == 0) {
    prefetch_map(gemm.cols);
    for (int residue = 0; residue < gemm.residues; ++residue) prefetch_map(gemm.of[residue].rows);
    for (Mbarrier& barrier : shared.full) mbarrier_init(barrier, 1);
    for (Mbarrier& barrier : shared.empty) mbarrier_init(barrier, C::kConsumers);
    mbarrier_init_fence();
  }
  __syncthreads();
  wait_for_previous_kernel();

  RingPosition<C::kStages> at;
  if (threadIdx.x < kWarpgroup) {  // The producer.
    give_up_registers<C::kProducerRegisters>();
    if (threadIdx.x == 0) {
      for (int index = first; index < gemm.raster.tiles; index += step) {
        const TileAt tile = gemm.raster(index);
        const TileOfResidue down = tile_of_residue(tile.n, gemm.residues, kTileN);
        const Residue& residue = gemm.of[down.residue];
        const int col = tile.m * kTileM - residue.columns;
        for (int block = 0; block < residue.blocks_k; ++block, at.advance()) {
          mbarrier_wait(shared.empty[at.stage], at.parity ^ 1);
          auto& stage = shared.stages[at.stage];
          Mbarrier& full = shared.full[at.stage];
          mbarrier_arrive_expecting(full, stage.kBytes);
          for (int box = 0; box < stage.kRowBoxes; ++box)
            load_operand_box(stage.rows[box], residue.rows, P::kRows, full, block * kBox, down.row + box * kBox);
          for (int box = 0; box < stage.kColBoxes; ++box)
            load_operand_box(stage.cols[box], gemm.cols, P::kCols, full, block * kBox - residue.k, col + box * kBox);
        }
      }
    }
  } else {  // A consumer.
    take_registers<C::kConsumerRegisters>();
    const int consumer = static_cast<int>(threadIdx.x) / kWarpgroup - 1, warp = static_cast<int>(threadIdx.x) / 32 % 4;
    const bool leads = threadIdx.x % kWarpgroup == 0;
    PackedSums<kTileM> packed;
    for (int index = first; index < gemm.raster.tiles; index += step) {
      const TileAt tile = gemm.raster(index);
      const TileOfResidue down = tile_of_residue(tile.n, gemm.residues, kTileN);
      const Residue& residue = gemm.of[down.residue];
      const int blocks_k = residue.blocks_k;
      if (residue.k > 0) {
        mbarrier_wait(shared.full[at.stage], at.parity);
        clear_early(shared.stages[at.stage].rows[consumer], residue.k, consumer);
      }

      // Main loop, and the stores of the tile before.
      float sums[1][kTileM / 2];  // [64, tile m]
      float row_sums[1][4];
      int previous = 0;
      for (int block = 0; block < blocks_k; ++block, at.advance()) {
        mbarrier_wait(shared.full[at.stage], at.parity);
        multiply(P{}, shared.stages[at.stage], Ones{}, consumer, block > 0, sums, row_sums);
        if (packed.waiting && block < packed.kPieces) packed.template store<true>(gemm.d_ld, block);
        wgmma_wait<1>();
        if (leads && block > 0) mbarrier_arrive(shared.empty[previous]);
        previous = at.stage;
      }
      if (packed.waiting) {
        for (int piece = blocks_k; piece < packed.kPieces; ++piece) packed.template store<true>(gemm.d_ld, piece);
      }
      packed.aim(residue.d, down.row + consumer * kBox + warp * kStripRows, tile.m * kTileM);
      wgmma_wait<0>();
      if (leads) mbarrier_arrive(shared.empty[previous]);

      // Epilogue.
      packed.take(typename P::T{}, sums[0]);
      packed.store_ends(residue.d, tile.m * kTileM);
    }
    for (int piece = 0; piece < packed.kPieces; ++piece) packed.template store<true>(gemm.d_ld, piece);
  }
}

ResidueGemm residue_gemm(const GemmArgs& args, const GemmPlan& plan) {
  const GemmProblem problem = problem_of(args);
  const ResidueTiles tiles = residue_tiles(problem, plan.tile);
  const bool along_m = args.d_major == Major::m;
  const ConstMatrixView rows = along_m ? args.b : args.a;
  ResidueGemm gemm = {.cols = make_tensor_map(along_m ? args.a : args.b, kBox),
                      .d_ld = args.d.ld * tiles.residues,
                      .residues = static_cast<int>(tiles.used),
                      .raster = Raster::of(static_cast<int>(tiles.across), static_cast<int>(tiles.down),
                                           static_cast<int>(ceil_div(kBandColumns, plan.tile.m)))};
  for (std::int64_t i = 0; i < tiles.used; ++i) {
    const RowsOfResidue operand = rows_of_residue(rows, tiles.residues, i), d = rows_of_residue(args.d, tiles.residues, i);
    gemm.of[i] = {.rows = make_tensor_map(operand.view, kBox),
                  .d = {.data = static_cast<std::byte*>(const_cast<void*>(d.view.data)),
                        .ld = d.view.ld,
                        .rows = static_cast<int>(d.view.rows),
                        .own = {.begin = static_cast<int>(d.shift), .end = static_cast<int>(d.view.cols)}},
                  .k = static_cast<int>(operand.shift),
                  .columns = static_cast<int>(d.shift),
                  .blocks_k = static_cast<int>(ceil_div(operand.view.cols, kBox))};
  }
  return gemm;
}

}  // namespace

void launch_persistent_residues(CudaQueue& queue, const GemmArgs& args, const GemmPlan& plan) {
  const ResidueGemm gemm = residue_gemm(args, plan);
  const auto launch = [&]<int kM, int kN>() {
    if (plan.tile != Tile{kM, kN}) return;
    using C = Config<kM, kN>;
    const auto with_type = [&]<class T>(T) {
      using AlongK = Product<T, Fastest::k, Fastest::k, false>;
      using Across = Product<T, Fastest::k, Fastest::other, false>;
      const bool cols_along_k = (args.d_major == Major::m ? args.a_major : args.b_major) == Major::k;
      launch_clusters(queue, "persistent_residues", cols_along_k ? persistent_residues<C, AlongK> : persistent_residues<C, Across>, gemm,
                      plan.blocks, C::kThreads, sizeof(typename C::SharedStorage));
    };
    if (args.a.dtype == DType::bf16) {
      with_type(bf16{});
    } else {
      with_type(f16{});
    }
  };
  launch.template operator()<256, 128>();
  launch.template operator()<192, 128>();
  launch.template operator()<128, 128>();
}

}  // namespace tilewave
