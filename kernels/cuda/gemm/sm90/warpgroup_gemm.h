// What the Hopper rows share. They think of D as it lies in memory, [N, M]: its rows run along the problem's N, its columns along M.
// So wgmma's row operand is the problem's B, its column operand the problem's A, and neither is transposed by anyone: which
// dimension is the fastest in memory is a bit of the instruction. Where D lies [M, N] the two change places, and with them what the
// code calls M and N.
#pragma once

#include "kernels/cuda/core/stream.h"
#include "kernels/cuda/gemm/sm90/first_blocks.h"
#include "kernels/cuda/gemm/sm90/ring.h"
#include "kernels/cuda/gemm/sm90/warpgroup_epilogue.h"
#include "kernels/cuda/prim/bulk_copy.h"
#include "kernels/cuda/prim/cluster.h"
#include "kernels/cuda/prim/raster.h"
#include "kernels/cuda/prim/tensor_map.h"
#include "kernels/cuda/prim/wgmma.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/sm90/warpgroup.h"
#include "kernels/gemm/tiling.h"

namespace tilewave {

// What a kernel is given.
struct WarpgroupGemm {
  CUtensorMap rows, cols;  // the operands, in boxes of 64 x 64, or a row's own
  Fastest rows_fastest = Fastest::k, cols_fastest = Fastest::k;
  DType operand_dtype = DType::bf16;
  int k_tiles = 0;  // of 64
  int tiles_m = 0, tiles_n = 0;
  int cluster = 1, clusters = 1;  // blocks that share their columns, and how many such run
  Raster raster;                  // of a cluster's turns, each of `cluster` tiles, one above the other where the row says nothing else
  FirstKTiles first_k_tiles[2];   // of either operand
  WarpgroupEpilogue epilogue;

  __device__ __forceinline__ void prefetch_maps() const {
    prefetch_tensor_map(rows);
    prefetch_tensor_map(cols);
  }
};

// So many turns across D and down it, each of so many tiles across, in bands of group_columns(k) columns.
inline Raster raster_in_bands(const GemmCall& call, std::int64_t across, std::int64_t down, std::int64_t tiles_of_turn = 1) {
  return Raster::of(static_cast<int>(across), static_cast<int>(down),
                    static_cast<int>(ceil_div(group_columns(call.problem.k), call.plan.tile.m * tiles_of_turn)));
}

inline WarpgroupGemm warpgroup_gemm(const GemmCall& call) {
  const GemmArgs& args = call.args;
  const GemmProblem& problem = call.problem;
  const auto fastest = [](Major major) { return major == Major::k ? Fastest::k : Fastest::other; };
  const bool along_m = args.d_major == Major::m;
  const ConstMatrixView &rows = along_m ? args.b : args.a, &cols = along_m ? args.a : args.b;
  const Fastest rows_fastest = fastest(along_m ? args.b_major : args.a_major),
                cols_fastest = fastest(along_m ? args.a_major : args.b_major);
  const Raster raster = raster_in_bands(call, call.plan.tiling.tiles_m, ceil_div(call.plan.tiling.tiles_n, call.plan.cluster));
  const auto clusters = static_cast<int>(call.plan.blocks / call.plan.cluster);
  const TileAt reach = raster.reach(clusters);
  return {.rows = make_tensor_map(rows, kBox),
          .cols = make_tensor_map(cols, kBox),
          .rows_fastest = rows_fastest,
          .cols_fastest = cols_fastest,
          .operand_dtype = problem.operand_dtype,
          .k_tiles = static_cast<int>(ceil_div(problem.k, kBox)),
          .tiles_m = static_cast<int>(call.plan.tiling.tiles_m),
          .tiles_n = static_cast<int>(call.plan.tiling.tiles_n),
          .cluster = call.plan.cluster,
          .clusters = clusters,
          .raster = raster,
          .first_k_tiles = {FirstKTiles::of(rows, rows_fastest, reach.n * call.plan.cluster * call.plan.tile.n),
                            FirstKTiles::of(cols, cols_fastest, reach.m * call.plan.tile.m)},
          .epilogue = warpgroup_epilogue(args)};
}

// By kThreads threads of each block, before they wait for the kernel before: of one in `parts` neighbours, whose K begins at first_k.
template <int kThreads>
__device__ __forceinline__ void prefetch_first_k_tiles(const WarpgroupGemm& gemm, int thread, int parts = 1, int first_k = 0) {
  const int block = static_cast<int>(blockIdx.x) / parts, blocks = static_cast<int>(gridDim.x) / parts;
  for (const FirstKTiles& operand : gemm.first_k_tiles) operand.prefetch(block * kThreads + thread, blocks * kThreads, first_k);
}
// By every warpgroup but the first.
template <int kThreads>
__device__ __forceinline__ void prefetch_first_k_tiles(const WarpgroupGemm& gemm) {
  const int thread = static_cast<int>(threadIdx.x) - kWarpgroup;
  if (thread >= 0) prefetch_first_k_tiles<kThreads - kWarpgroup>(gemm, thread);
}

// Blocks that stay, alone or in pairs, take every `clusters`th turn of the raster from this one on, each its own of the cluster's tiles.
template <class Gemm>
__device__ __forceinline__ int first_tile_index(const Gemm& gemm) {
  return cluster_of_cta(gemm.cluster);
}
template <class Gemm>
__device__ __forceinline__ TileAt own_tile(const Gemm& gemm, int tile_index) {
  const TileAt tile = gemm.raster(tile_index);
  return {.m = tile.m, .n = tile.n * gemm.cluster + static_cast<int>(cluster_rank())};
}

// The thread that loads calls it before each load, and it waits for the kernel before at the first one, when all is computed that this
// needs: ahead of the loop the compiler would wait before it computes.
struct WaitOnce {
  bool done = false;

  __device__ __forceinline__ void operator()() {
    if (!done) wait_for_previous_kernel();
    done = true;
  }
};

// What is an immediate of the instruction, or would be a branch in the main loop, as a type: the operands' type and majors, and
// whether the row operand is summed over K too.
template <class Element, Fastest kRowsFastest, Fastest kColsFastest, bool kSums>
struct MmaForm {
  using T = Element;
  static constexpr Fastest kRows = kRowsFastest, kCols = kColsFastest;
  static constexpr bool kSumsRows = kSums;
};

// Stands for whichever a launch asks for, told apart in the kernel.
struct AnyMmaForm {};

// Whether it is a weight's gradient's, without sums of rows.
template <class P>
inline constexpr bool kMakesGradient = (P::kRows == Fastest::other) && (P::kCols == Fastest::other) && !P::kSumsRows;
template <>
inline constexpr bool kMakesGradient<AnyMmaForm> = false;

template <class Body>
__device__ __forceinline__ void with_mma_form(AnyMmaForm, const WarpgroupGemm& gemm, bool sums_rows, Body&& body) {
  const auto with_sums = [&]<class T, Fastest kRows, Fastest kCols>() {
    if (sums_rows) {
      body(MmaForm<T, kRows, kCols, true>{});
    } else {
      body(MmaForm<T, kRows, kCols, false>{});
    }
  };
  const auto with_majors = [&]<class T>(T) {
    if (gemm.rows_fastest == Fastest::k) {
      if (gemm.cols_fastest == Fastest::k) {
        with_sums.template operator()<T, Fastest::k, Fastest::k>();
      } else {
        with_sums.template operator()<T, Fastest::k, Fastest::other>();
      }
    } else {
      if (gemm.cols_fastest == Fastest::k) {
        with_sums.template operator()<T, Fastest::other, Fastest::k>();
      } else {
        with_sums.template operator()<T, Fastest::other, Fastest::other>();
      }
    }
  };
  if (gemm.operand_dtype == DType::bf16) {
    with_majors(bf16{});
  } else {
    with_majors(f16{});
  }
}

template <class T, Fastest kRows, Fastest kCols, bool kSums, class Body>
__device__ __forceinline__ void with_mma_form(MmaForm<T, kRows, kCols, kSums> mma_form, const WarpgroupGemm&, bool sums_rows, Body&& body) {
  if constexpr (kSums) {
    if (!sums_rows) return body(MmaForm<T, kRows, kCols, false>{});
  }
  body(mma_form);
}

// The same for a kernel of each, without sums of rows: launch(Product<...>{}).
template <class T, class Launch>
void with_majors_of(const WarpgroupGemm& gemm, Launch&& launch) {
  const bool rows_k = gemm.rows_fastest == Fastest::k, cols_k = gemm.cols_fastest == Fastest::k;
  if (rows_k && cols_k) launch(MmaForm<T, Fastest::k, Fastest::k, false>{});
  if (rows_k && !cols_k) launch(MmaForm<T, Fastest::k, Fastest::other, false>{});
  if (!rows_k && cols_k) launch(MmaForm<T, Fastest::other, Fastest::k, false>{});
  if (!rows_k && !cols_k) launch(MmaForm<T, Fastest::other, Fastest::other, false>{});
}
template <class Launch>
void with_mma_form_of(const WarpgroupGemm& gemm, Launch&& launch) {
  with_half(gemm.operand_dtype, "gemm", [&]<class T>(T) { with_majors_of<T>(gemm, launch); });
}

// A kernel of its own for a weight's gradient: both operands lie across K, and its sums are stored or added as they are. AnyMmaForm for
// the rest.
template <class Launch>
void with_wgrad_mma_form(const WarpgroupGemm& gemm, Launch&& launch) {
  const auto with_sums = [&]<class T>(T) {
    if (gemm.epilogue.bias_gradient.data != nullptr) {
      launch(MmaForm<T, Fastest::other, Fastest::other, true>{});
    } else {
      launch(MmaForm<T, Fastest::other, Fastest::other, false>{});
    }
  };
  const bool gradient = gemm.rows_fastest == Fastest::other && gemm.cols_fastest == Fastest::other && gemm.epilogue.stores_accumulators;
  if (!gradient) return launch(AnyMmaForm{});
  with_half(gemm.operand_dtype, "gemm", with_sums);
}

// One stage of the ring: 64 of K of a tile's two operands, in boxes.
template <int kTileRows, int kTileCols>
struct OperandStage {
  static constexpr int kRowBoxes = kTileRows / kBox, kColBoxes = kTileCols / kBox, kColBoxCols = kBox;
  static constexpr unsigned kBytes = (kRowBoxes + kColBoxes) * kBoxBytes;

  alignas(1024) std::byte rows[kRowBoxes][kBoxBytes];  // [tile rows, 64]
  alignas(1024) std::byte cols[kColBoxes][kBoxBytes];  // [tile cols, 64]
};

// Boxes of 64 k from `k` on, side by side from row or column `first` on: as many of these as a box has swizzled lines.
template <int kBoxes, int kBytes>
__device__ __forceinline__ void load_boxes(std::byte (&to)[kBoxes][kBytes], const CUtensorMap& map, Fastest fastest, Mbarrier& full, int k,
                                           int first) {
  for (int box = 0; box < kBoxes; ++box) {
    const int other = first + box * (kBytes / 128);
    tma_load(to[box], map, full, fastest == Fastest::k ? k : other, fastest == Fastest::k ? other : k);
  }
}

template <class Stage>
__device__ __forceinline__ void load_stage(Stage& stage, const WarpgroupGemm& gemm, Mbarrier& full, int k, int row, int col) {
  mbarrier_arrive_expecting(full, stage.kBytes);
  load_boxes(stage.rows, gemm.rows, gemm.rows_fastest, full, k, row);
  load_boxes(stage.cols, gemm.cols, gemm.cols_fastest, full, k, col);
}

// The same where a cluster is a pair of blocks that have their columns in common, or one block alone: each of a pair loads every other box
// of them, for both.
template <class Stage>
__device__ __forceinline__ void load_stage_of_cluster(Stage& stage, const WarpgroupGemm& gemm, Mbarrier& full, int k, int row, int col,
                                                      unsigned rank) {
  if (gemm.cluster == 1) return load_stage(stage, gemm, full, k, row, col);
  mbarrier_arrive_expecting(full, stage.kBytes);
  load_boxes(stage.rows, gemm.rows, gemm.rows_fastest, full, k, row);
  for (int pair = 0; pair < stage.kColBoxes; pair += 2) {
    const int box = pair + static_cast<int>(rank), other = col + box * kBox;
    if (box >= stage.kColBoxes) break;
    tma_load_multicast(stage.cols[box], gemm.cols, full, gemm.cols_fastest == Fastest::k ? k : other,
                       gemm.cols_fastest == Fastest::k ? other : k, 0b11);
  }
}

// An operand of 8 columns of ones: rows x ones sums the rows over K.
struct Ones {
  alignas(1024) std::byte bytes[1024];

  __device__ __forceinline__ void fill(DType dtype) {
    const unsigned one = dtype == DType::bf16 ? 0x3f803f80u : 0x3c003c00u;
    for (unsigned i = threadIdx.x; i < sizeof(bytes) / 4; i += blockDim.x) reinterpret_cast<unsigned*>(bytes)[i] = one;
    fence_proxy_async_shared();
  }
};

// Issues a stage's products of kMmaTiles times 64 rows, from box `first` of the rows on, by all columns: added to the sums or, with
// `accumulate` off, first. beside(rows, block, add) may issue more of each row operand's.
template <class P, int kMmaTiles, int kColumns, class Stage, class Beside>
__device__ __forceinline__ void issue_mmas(const Stage& stage, int first, bool accumulate, float (&accumulators)[kMmaTiles][kColumns],
                                           Beside&& beside) {
  const std::uint32_t rows_at = operand_at(stage.rows[first]), cols_at = operand_at(stage.cols);
  wgmma_fence();
#pragma unroll
  for (int step = 0; step < kBox / 16; ++step) {
#pragma unroll
    for (int block = 0; block < kMmaTiles; ++block) {
      const std::uint64_t rows = operand<P::kRows>(rows_at, step, block);
      const bool add = accumulate || step > 0;
      wgmma<typename P::T, P::kRows, P::kCols, 2 * kColumns>(accumulators[block], rows,
                                                             operand<P::kCols, Stage::kColBoxCols>(cols_at, step), add);
      beside(rows, block, add);
    }
  }
  wgmma_commit();
}
template <class P, int kMmaTiles, int kColumns, class Stage>
__device__ __forceinline__ void multiply(P, const Stage& stage, int first, bool accumulate, float (&accumulators)[kMmaTiles][kColumns]) {
  static_assert(!P::kSumsRows, "sums of rows need ones, and a place");
  issue_mmas<P>(stage, first, accumulate, accumulators, [](std::uint64_t, int, bool) {});
}
// The same where, with P::kSumsRows, the rows are summed over K too, into row_sums, each of the 8 columns alike.
template <class P, int kMmaTiles, int kColumns, class Stage>
__device__ __forceinline__ void multiply(P, const Stage& stage, const Ones& ones, int first, bool accumulate,
                                         float (&accumulators)[kMmaTiles][kColumns], float (&row_sums)[kMmaTiles][4]) {
  issue_mmas<P>(stage, first, accumulate, accumulators, [&](std::uint64_t rows, int block, bool add) {
    if constexpr (P::kSumsRows) {
      wgmma<typename P::T, P::kRows, Fastest::k, 8>(row_sums[block], rows, operand<Fastest::k>(operand_at(ones.bytes), 0), add);
    }
  });
}

// Launches a kernel of one block per SM whose blocks come in clusters, or all run at once, and which may begin while the one before it
// ends.
enum class CtasRun : std::uint8_t { in_clusters, all_at_once, anyhow };
template <class Kernel, class Gemm>
void launch_clusters(CudaQueue& queue, const char* name, Kernel* kernel, const Gemm& gemm, std::int64_t blocks, int threads,
                     std::size_t shared_bytes, CtasRun how = CtasRun::in_clusters) {
  TW_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes)));
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[0].val.programmaticStreamSerializationAllowed = 1;
  if (how == CtasRun::in_clusters) {
    attributes[1].id = cudaLaunchAttributeClusterDimension;
    attributes[1].val.clusterDim = {.x = static_cast<unsigned>(gemm.cluster), .y = 1, .z = 1};
  } else {
    attributes[1].id = cudaLaunchAttributeCooperative;
    attributes[1].val.cooperative = 1;
  }
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream_of(queue);
  config.attrs = attributes;
  config.numAttrs = how == CtasRun::anyhow ? 1 : 2;
  cudaLaunchKernelEx(&config, kernel, gemm);
  TW_CUDA_LAUNCHED(name);
}

}  // namespace tilewave
