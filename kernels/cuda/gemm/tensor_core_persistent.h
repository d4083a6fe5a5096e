// The kernel of the row tensor_core_persistent. What it adds to tensor_core_pipelined: one wave of blocks that walk over the tiles
// by a raster; the ring of stages flows on from one tile into the next, so that copies never stop for an epilogue, which uses the
// one stage that is free. Tiles that whole waves leave are taken in parts of K, whose sums a second kernel adds in order.
#pragma once

#include "kernels/cuda/gemm/persistent_problem.h"
#include "kernels/cuda/gemm/stage_feed.h"
#include "kernels/cuda/gemm/warp_runs.h"
#include "kernels/gemm/rows/tensor_core_persistent.h"
#include "kernels/gemm/with_tile.h"

namespace tilewave {

template <class Block, int kStages, int kBlocks>
__global__ void __launch_bounds__(Block::threads, kBlocks) tensor_core_persistent(const __grid_constant__ PersistentProblem p) {
  extern __shared__ __align__(128) char stages[];
  static_assert(WarpTile<Block>::kSlabBytes * Block::threads / 32 <= Block::stage_bytes, "the slabs of all warps fit a stage");
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const int warp_row = warp / Block::warps_across * Block::warp_rows, warp_col = warp % Block::warps_across * Block::warp_cols;
  const std::uint32_t ring = shared_address(stages);
  const auto row_share_at = [&](const TilePlace& place) {
    return WarpTile<Block>::kSums && p.sum_rows && place.col == 0 ? warp % Block::warps_across : kNoRows;
  };

  // The copies' own walk over the items. Past the last one they rest.
  StageFeed<Block, kStages> feed(ring, thread);
  int next_item = static_cast<int>(blockIdx.x);
  const auto aim = [&] {
    if (next_item >= p.items) return feed.stop();
    const StagesOfK part = depth_of_item(p, next_item);
    const TilePlace place = place_of_item(p, next_item);
    feed.aim({.left = p.left,
              .right = p.right,
              .row = std::int64_t{place.row} * Block::rows,
              .col = std::int64_t{place.col} * Block::cols,
              .blocks = part.end - part.begin,
              .from = part.begin * Block::Left::kDepth,
              .end = p.depth});
  };
  const auto next_run = [&] {
    next_item += static_cast<int>(gridDim.x);
    aim();
  };
  aim();
  feed.fill(next_run);

  const auto stage_at = [&](int stage) { return ring + static_cast<std::uint32_t>(stage * Block::stage_bytes); };
  Fragments<Block> fragments[2];
  WarpTile<Block> tile;
  int here = 0, next = 0;
#pragma unroll 1
  for (int item = static_cast<int>(blockIdx.x); item < p.items; item += static_cast<int>(gridDim.x)) {
    const StagesOfK part = depth_of_item(p, item);
    const TilePlace place = place_of_item(p, item);
    const int row_share = row_share_at(place);
    if (item < p.whole_tiles) {
      prefetch_sides<Block::rows, Block::cols, Block::threads>(p.epilogue, std::int64_t{place.row} * Block::rows,
                                                               std::int64_t{place.col} * Block::cols, thread);
    }
    tile.clear();
    fragments[0].load(stage_at(next), warp_row, warp_col, 0, lane);
    const auto multiply = [&]<bool kSumRows>() {
#pragma unroll 1
      for (int left = part.end - part.begin; left > 0; --left) {
        here = next;
        next = next + 1 == kStages ? 0 : next + 1;
        multiply_block<kSumRows>(tile, fragments, stage_at(here), stage_at(next), warp_row, warp_col, lane, row_share, feed, next_run);
      }
    };
    if (WarpTile<Block>::kSums && row_share != kNoRows) {
      multiply.template operator()<WarpTile<Block>::kSums>();
    } else {
      multiply.template operator()<false>();
    }

    // Epilogue, where it computes and at D's edges through the stage `here`, which no warp reads any more and no copy fills yet.
    const GemmEpilogue& e = p.epilogue;
    const std::int64_t col = std::int64_t{place.col} * Block::cols;
    const TileLines lines = lines_from(std::int64_t{place.row} * Block::rows, e.rows);
    if (item >= p.whole_tiles) {
      store_part_of_tile(tile, p.parts, item - p.whole_tiles, lines_from(0, Block::rows), row_share, warp_row, warp_col, lane);
    } else if (p.sums_alone && e.wide && col + Block::cols <= e.cols) {
      store_runs(tile, e.d, lines, warp_row, col + warp_col, lane);
      tile.for_each_row_sum(lines, warp_row, row_share, lane, [&](std::int64_t n, float sum) { finish_bias_gradient(e, n, sum); });
    } else {
      float* const slab = reinterpret_cast<float*>(stages + here * Block::stage_bytes + warp * WarpTile<Block>::kSlabBytes);
      finish_tile(tile, e, lines, row_share, slab, warp_row, col + warp_col, lane);
      __syncthreads();
    }
  }
  cp_async_wait<0>();
}

template <class T, Contiguous kLeft, Contiguous kRight, int kRows, int kCols>
void launch_persistent(CudaQueue& queue, const PersistentLaunch& launch) {
  constexpr TensorCoreConfig config = tensor_core_persistent_config(kRows, kCols);
  using Block = BlockTile<T, kRows, kCols, config.warps_down, config.warps_across, kLeft, kRight>;
  constexpr int shared = config.stages * Block::stage_bytes;
  static_assert(shared == tensor_core_shared_bytes(kRows, kCols, config.stages), "the plan and the kernel agree on the stages");
  const auto kernel = tensor_core_persistent<Block, config.stages, config.blocks>;
  TW_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
  kernel<<<static_cast<unsigned>(launch.grid), Block::threads, shared, stream_of(queue)>>>(launch.problem);
  TW_CUDA_LAUNCHED("gemm tensor_core_persistent");
}

template <class T, Contiguous kLeft, Contiguous kRight>
void launch_persistent(CudaQueue& queue, const PersistentLaunch& launch) {
  with_tile<kTensorCorePersistentTiles>("tensor_core_persistent", {launch.rows, launch.cols},
                                        [&]<int kRows, int kCols>() { launch_persistent<T, kLeft, kRight, kRows, kCols>(queue, launch); });
}

extern template void launch_persistent<bf16, Contiguous::along_depth, Contiguous::along_depth>(CudaQueue&, const PersistentLaunch&);
extern template void launch_persistent<bf16, Contiguous::along_depth, Contiguous::across>(CudaQueue&, const PersistentLaunch&);
extern template void launch_persistent<bf16, Contiguous::across, Contiguous::across>(CudaQueue&, const PersistentLaunch&);
extern template void launch_persistent<f16, Contiguous::along_depth, Contiguous::along_depth>(CudaQueue&, const PersistentLaunch&);
extern template void launch_persistent<f16, Contiguous::along_depth, Contiguous::across>(CudaQueue&, const PersistentLaunch&);
extern template void launch_persistent<f16, Contiguous::across, Contiguous::across>(CudaQueue&, const PersistentLaunch&);

}  // namespace tilewave
