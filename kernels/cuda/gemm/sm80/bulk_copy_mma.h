// The kernel of the row bulk_copy_mma. What it adds to tensor_core_persistent: TMA fills the ring, an instruction a box,
// counted by a barrier, and takes sums from a warp's own shared memory to D under the next tile's products. Warps are left with products
// and the reads of their fragments; they wait for each other through the ring alone, and drift apart by as much as it holds. Whoever asks
// for a stage falls behind the others by what that takes, so warps take turns.
#pragma once

#include "kernels/cuda/gemm/sm80/persistent_problem.h"
#include "kernels/cuda/gemm/sm90/warp_strips.h"
#include "kernels/cuda/prim/cluster.h"
#include "kernels/cuda/prim/tensor_map.h"
#include "kernels/gemm/facts/with_tile.h"
#include "kernels/gemm/sm80/bulk_copy_mma.h"
#include "kernels/gemm/sm90/warpgroup.h"

namespace tilewave {

struct BulkCopyProblem : PersistentProblem {
  CUtensorMap left_map, right_map;
  CUtensorMap d_map;         // of 16 bits a warp's tile, of 32 a strip
  CUtensorMap partial_map;   // strips
  int accumulator_cols = 0;  // columns of D that the engine stores, or adds to, as they were summed
};

// What of depth a stage has first: of an item from row and col of D on, `blocks` blocks.
struct StageOf {
  int row = 0, col = 0, blocks = 0;
};
// Where the copies are; whose turn it is moves it on.
struct CopyWalk {
  StageOf item;
  int index = 0, left = 0, depth = 0;  // of the item: blocks to come, and where the next one begins
};

template <class Cta>
struct BulkCopyShared {
  static constexpr int kStages = kBulkCopyMmaStages, kWarps = kBulkCopyMmaWarps, kStagingBuffers = kBulkCopyMmaStagingBuffers;
  static_assert(Cta::threads == 32 * kWarps);
  static_assert(WarpTile<Cta>::kSlabBytes <= kStagingBuffers * kStagingBytes, "a warp's strips are its slab too");
  static_assert(Cta::warp_rows % kSubtileRows == 0 && Cta::warp_cols == kSubtileColumns, "a warp's tile is made of shares");

  std::byte stages[kStages][Cta::stage_bytes];
  std::byte staging[kWarps][kStagingBuffers * kStagingBytes];
  Mbarrier full[kStages];   // its bytes have come
  Mbarrier empty[kStages];  // every warp has read it
  StageOf items[kStages];   // of stages that an item begins with
  CopyWalk walk;

  // The walk at the beginning of an item, or past the last one.
  static __device__ __forceinline__ CopyWalk walk_from(const BulkCopyProblem& p, int item) {
    if (item >= p.items) return {.index = item};
    const StagesOfK depth = depth_of_item(p, item);
    const TileCoord coord = coord_of_item(p, item);
    const int blocks = depth.end - depth.begin;
    return {.item = {.row = coord.row * Cta::rows, .col = coord.col * Cta::cols, .blocks = blocks},
            .index = item,
            .left = blocks,
            .depth = depth.begin * Cta::Left::kDepth};
  }

  // Asks for the walk's next block of depth, if there is one.
  __device__ __forceinline__ void copy_next(const BulkCopyProblem& p, int stage) {
    CopyWalk at = walk;
    if (at.index >= p.items) return;
    if (at.left == at.item.blocks) items[stage] = at.item;
    mbarrier_arrive_expecting(full[stage], Cta::stage_bytes);
    load_operand<typename Cta::Left>(stages[stage], p.left_map, full[stage], at.item.row, at.depth);
    load_operand<typename Cta::Right>(stages[stage] + Cta::Left::kBytes, p.right_map, full[stage], at.item.col, at.depth);
    at.depth += Cta::Left::kDepth;
    if (--at.left == 0) at = walk_from(p, at.index + static_cast<int>(gridDim.x));
    walk = at;
  }

 private:
  template <class Operand>
  static __device__ __forceinline__ void load_operand(std::byte* to, const CUtensorMap& boxes, Mbarrier& barrier, int first, int depth) {
    if constexpr (Operand::kAlongDepth) {
      tma_load(to, boxes, barrier, depth, first);
    } else {
#pragma unroll
      for (int box = 0; box < Operand::kBytes / Operand::kBoxBytes; ++box) {
        tma_load(to + box * Operand::kBoxBytes, boxes, barrier, first + box * Operand::kBoxElements, depth);
      }
    }
  }
};

// A warp's sums on their way out as they are, from row `row` of the map and column `col` on: in 16 bits all at once,
template <class Cta, bool kSumsRows, int kStagingBuffers>
__device__ __forceinline__ void send_packed(const WarpTile<Cta, kSumsRows>& tile, WarpStaging<kStagingBuffers>& staging,
                                            const CUtensorMap& map, int row, int col) {
  using T = typename Cta::Element;
  static_assert(tile.kDown == kStagingBuffers, "a warp's tile fills its strips");
  staging.settle();
#pragma unroll
  for (int i = 0; i < tile.kDown; ++i) {
#pragma unroll
    for (int g = 0; g < tile.kAcross; g += 2) {
      const float(&z)[4] = tile.accumulators[i][g], (&next)[4] = tile.accumulators[i][g + 1];
      store_matrices(staging.groups(staging.first + i * kStagingBytes, g), pack<T>(z[0], z[1]), pack<T>(z[2], z[3]),
                     pack<T>(next[0], next[1]), pack<T>(next[2], next[3]));
    }
  }
  fence_proxy_async_shared();
  __syncwarp();
  if (staging.lane == 0) {
    tma_store(map, staging.first, col, row);
    tma_store_commit();
  }
}
// and in fp32, stored or added, 16 rows at a time.
template <class Cta, bool kSumsRows, int kStagingBuffers>
__device__ __forceinline__ void store_accumulators(const WarpTile<Cta, kSumsRows>& tile, WarpStaging<kStagingBuffers>& staging,
                                                   const CUtensorMap& map, int row, int col, bool add) {
  staging.settle();  // the tile before may have filled all of them with one box
#pragma unroll
  for (int i = 0; i < tile.kDown; ++i) {
    float z[kSubtileValues];
#pragma unroll
    for (int x = 0; x < kSubtileValues; ++x) z[x] = tile.accumulators[i][x / 4][x % 4];
    staging.put(map, {.row = row + kSubtileRows * i, .col = col}, z, add);
  }
}

template <class Cta>
__global__ void __launch_bounds__(Cta::threads, 1) bulk_copy_mma(const __grid_constant__ BulkCopyProblem p) {
  extern __shared__ __align__(1024) std::byte storage[];
  using Shared = BulkCopyShared<Cta>;
  constexpr int kStages = Shared::kStages;
  auto& shared = storage_in<Shared>(storage);
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const int warp_row = warp / Cta::warps_across * Cta::warp_rows, warp_col = warp % Cta::warps_across * Cta::warp_cols;
  const GemmEpilogue& e = p.epilogue;

  // Prologue: all stages but one.
  if (thread == 0) {
    prefetch_tensor_map(p.left_map);
    prefetch_tensor_map(p.right_map);
    mbarrier_init(shared.full, 1);
    mbarrier_init(shared.empty, Shared::kWarps);
    mbarrier_init_fence();
    shared.walk = shared.walk_from(p, static_cast<int>(blockIdx.x));
#pragma unroll 1
    for (int stage = 0; stage < kStages - 1; ++stage) shared.copy_next(p, stage);
  }
  __syncthreads();

  const auto address_of = [&](int stage) { return shared_address(shared.stages[stage]); };
  WarpStaging<Shared::kStagingBuffers> staging = {.first = shared.staging[warp], .lane = lane};
  Fragments<Cta> fragments[2];
  WarpTile<Cta> tile;
  RingPosition<kStages> next;
  int issuing_warp = 0;
#pragma unroll 1
  for (int item = static_cast<int>(blockIdx.x); item < p.items; item += static_cast<int>(gridDim.x)) {
    const bool is_partial = item >= p.whole_tiles, is_last = item + static_cast<int>(gridDim.x) >= p.items;
    tile.clear();
    mbarrier_wait(shared.full[next.stage], next.parity);
    __syncwarp();
    fragments[0].load(address_of(next.stage), warp_row, warp_col, 0, lane);
    const StageOf at = shared.items[next.stage];
    const int row_sum_rank = WarpTile<Cta>::kSums && p.sum_rows && at.col == 0 ? warp % Cta::warps_across : kNoRows;
    if (!is_partial) prefetch_sides<Cta::rows, Cta::cols, Cta::threads>(e, at.row, at.col, thread);
    const int part = item - p.whole_tiles;

    // While a step of depth is multiplied, the next one's fragments are read, from the next stage in the end, and the stage before this
    // one is filled anew. Whose turn it is does so before it releases this stage, which the next turn waits for: turns come one by one.
    const auto multiply = [&]<bool kSumRows>() {
#pragma unroll 1
      for (int left = at.blocks; left > 0; --left) {
        const RingPosition<kStages> here = next;
        next.advance();
#pragma unroll
        for (int step = 0; step < Cta::steps; ++step) {
          const bool last = step + 1 == Cta::steps;
          if (last && !(is_last && left == 1)) mbarrier_wait(shared.full[next.stage], next.parity);
          fragments[(step + 1) % 2].load(address_of(last ? next.stage : here.stage), warp_row, warp_col, (step + 1) % Cta::steps, lane);
          if (step == 2) {
            if (warp == issuing_warp && elect_lane()) {
              const bool wraps = here.stage == 0;
              const int before = wraps ? kStages - 1 : here.stage - 1;
              mbarrier_wait(shared.empty[before], wraps ? here.parity ^ 1 : here.parity);
              shared.copy_next(p, before);
            }
            __syncwarp();  // products are the whole warp's
            issuing_warp = (issuing_warp + 1) % Shared::kWarps;
          }
          tile.multiply(fragments[step % 2]);
          if constexpr (kSumRows) tile.sum_rows(fragments[step % 2], row_sum_rank, lane);
          if (step == 2) {
            __syncwarp();
            if (lane == 0) mbarrier_arrive(shared.empty[here.stage]);
          }
        }
      }
      if constexpr (kSumRows) {
        tile.for_each_row_sum(lines_from(is_partial ? 0 : at.row, is_partial ? Cta::rows : e.rows), warp_row, row_sum_rank, lane,
                              [&](std::int64_t n, float sum) {
                                if (is_partial) {
                                  p.parts.bias_gradients[part * p.parts.n + n] = sum;
                                } else {
                                  finish_bias_gradient(e, n, sum);
                                }
                              });
      }
    };
    if (WarpTile<Cta>::kSums && row_sum_rank != kNoRows) {
      multiply.template operator()<WarpTile<Cta>::kSums>();
    } else {
      multiply.template operator()<false>();
    }

    // Epilogue, through the warp's own shared memory.
    const int row = at.row + warp_row, col = at.col + warp_col;
    if (is_partial) {
      store_accumulators(tile, staging, p.partial_map, part * Cta::rows + warp_row, warp_col, false);
    } else if (min(std::int64_t{at.col + Cta::cols}, e.cols) > p.accumulator_cols) {
      staging.settle();
      tile.finish_all(e, lines_from(at.row, e.rows), reinterpret_cast<float*>(staging.first), warp_row, col, lane);
    } else if (e.d.dtype == DType::f32) {
      store_accumulators(tile, staging, p.d_map, row, col, e.accumulate);
    } else {
      send_packed(tile, staging, p.d_map, row, col);
    }
  }
  staging.settle();
}

struct BulkCopyLaunch {
  PersistentLaunch tiles;
  ConstMatrixView left, right;
  ConstMatrixView accumulators;  // D's columns that the engine stores as they were summed; none where it cannot
  ConstMatrixView parts;         // all parts of the last tiles, one above the other
};

template <class Cta>
void launch_bulk_copy_mma(CudaQueue& queue, const BulkCopyLaunch& launch) {
  constexpr int shared = sizeof(BulkCopyShared<Cta>);
  static_assert(shared <= bulk_copy_mma_shared_bytes({Cta::rows, Cta::cols}), "the plan knows what a block needs");
  BulkCopyProblem problem = {launch.tiles.problem, make_tensor_map(launch.left, Cta::Left::kLines),
                             make_tensor_map(launch.right, Cta::Right::kLines)};
  if (launch.accumulators) {
    problem.d_map = make_tensor_map(launch.accumulators, launch.accumulators.dtype == DType::f32 ? kSubtileRows : Cta::warp_rows);
    problem.accumulator_cols = static_cast<int>(launch.accumulators.cols);
  }
  if (launch.parts) problem.partial_map = make_tensor_map(launch.parts, kSubtileRows);
  TW_CUDA(cudaFuncSetAttribute(bulk_copy_mma<Cta>, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
  bulk_copy_mma<Cta><<<static_cast<unsigned>(launch.tiles.grid), Cta::threads, shared, stream_of(queue)>>>(problem);
  TW_CUDA_LAUNCHED("gemm bulk_copy_mma");
}

template <class T, Contiguous kLeft, Contiguous kRight>
void launch_bulk_copy_mma(CudaQueue& queue, const BulkCopyLaunch& launch) {
  with_tile<kBulkCopyMmaTiles>("bulk_copy_mma", {launch.tiles.rows, launch.tiles.cols}, [&]<int kRows, int kCols>() {
    launch_bulk_copy_mma<CtaTile<T, kRows, kCols, kRows / 64, kCols / 64, kLeft, kRight>>(queue, launch);
  });
}

extern template void launch_bulk_copy_mma<bf16, Contiguous::along_depth, Contiguous::along_depth>(CudaQueue&, const BulkCopyLaunch&);
extern template void launch_bulk_copy_mma<bf16, Contiguous::along_depth, Contiguous::across>(CudaQueue&, const BulkCopyLaunch&);
extern template void launch_bulk_copy_mma<bf16, Contiguous::across, Contiguous::across>(CudaQueue&, const BulkCopyLaunch&);
extern template void launch_bulk_copy_mma<f16, Contiguous::along_depth, Contiguous::along_depth>(CudaQueue&, const BulkCopyLaunch&);
extern template void launch_bulk_copy_mma<f16, Contiguous::along_depth, Contiguous::across>(CudaQueue&, const BulkCopyLaunch&);
extern template void launch_bulk_copy_mma<f16, Contiguous::across, Contiguous::across>(CudaQueue&, const BulkCopyLaunch&);

}  // namespace tilewave
