// The kernel of the row tensor_core_persistent. What it adds to tensor_core_pipelined: one wave of blocks that walk over the tiles
// by a raster; the ring of stages flows on from one tile into the next, so that copies never stop for an epilogue, which uses the
// one stage that is free.
#pragma once

#include "kernels/cuda/gemm/stage_feed.h"
#include "kernels/gemm/rows/tensor_core_persistent.h"

namespace tilewave {

template <class Block, int kStages, int kBlocks>
__global__ void __launch_bounds__(Block::threads, kBlocks) tensor_core_persistent(const __grid_constant__ TileProblem p) {
  extern __shared__ __align__(128) char stages[];
  static_assert(WarpTile<Block>::kSlabBytes * Block::threads / 32 <= Block::stage_bytes, "the slabs of all warps fit a stage");
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const int warp_row = warp / Block::warps_across * Block::warp_rows, warp_col = warp % Block::warps_across * Block::warp_cols;
  const std::uint32_t ring = shared_address(stages);
  const int tiles = p.tiles_down * p.tiles_across, items = tiles * p.split;
  const int blocks = p.depth_of_part / Block::Left::kDepth;  // of depth, in an item

  // The copies' own walk over the items. Past the last one they rest.
  StageFeed<Block, kStages> feed(ring, blocks, thread);
  int next_item = static_cast<int>(blockIdx.x);
  const auto aim = [&] {
    if (next_item >= items) return feed.stop();
    const TilePlace place = place_of(p, next_item % tiles);
    feed.aim({.left = p.left,
              .right = p.right,
              .row = std::int64_t{place.row} * Block::rows,
              .col = std::int64_t{place.col} * Block::cols,
              .from = next_item / tiles * p.depth_of_part,
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
  for (int item = static_cast<int>(blockIdx.x); item < items; item += static_cast<int>(gridDim.x)) {
    const TilePlace place = place_of(p, item % tiles);
    const std::int64_t row = std::int64_t{place.row} * Block::rows, col = std::int64_t{place.col} * Block::cols;
    const bool sum_rows = p.sum_rows && place.col == 0 && warp_col == 0;
    if (p.split == 1) prefetch_sides<Block::rows, Block::cols, Block::threads>(p.epilogue, row, col, thread);
    tile.clear();
    fragments[0].load(stage_at(next), warp_row, warp_col, 0, lane);
#pragma unroll 1
    for (int block = 0; block < blocks; ++block) {
      here = next;
      next = next + 1 == kStages ? 0 : next + 1;
      multiply_block(tile, fragments, stage_at(here), stage_at(next), warp_row, warp_col, lane, sum_rows, feed, next_run);
    }

    // Epilogue, through the stage `here`, which no warp reads any more and no copy fills yet.
    float* const slab = reinterpret_cast<float*>(stages + here * Block::stage_bytes + warp * WarpTile<Block>::kSlabBytes);
    finish_tile(tile, p, lines_from(row, p.epilogue.rows), item / tiles, sum_rows, slab, warp_row, col + warp_col, lane);
    __syncthreads();
  }
  cp_async_wait<0>();
}

struct PersistentLaunch {
  TileProblem problem;
  std::int64_t rows = 0, cols = 0;  // of a tile as D lies in memory
  std::int64_t grid = 0;
};

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
  switch (launch.rows * 1000 + launch.cols) {
    case 256'128:
      return launch_persistent<T, kLeft, kRight, 256, 128>(queue, launch);
    case 128'256:
      return launch_persistent<T, kLeft, kRight, 128, 256>(queue, launch);
    case 128'128:
      return launch_persistent<T, kLeft, kRight, 128, 128>(queue, launch);
    case 256'064:
      return launch_persistent<T, kLeft, kRight, 256, 64>(queue, launch);
    case 64'256:
      return launch_persistent<T, kLeft, kRight, 64, 256>(queue, launch);
    case 128'064:
      return launch_persistent<T, kLeft, kRight, 128, 64>(queue, launch);
    case 64'128:
      return launch_persistent<T, kLeft, kRight, 64, 128>(queue, launch);
    case 64'064:
      return launch_persistent<T, kLeft, kRight, 64, 64>(queue, launch);
    default:
      throw Error(sentence("gemm: tensor_core_persistent has no tile of ", launch.rows, " rows and ", launch.cols, " columns."));
  }
}

extern template void launch_persistent<bf16, Contiguous::along_depth, Contiguous::along_depth>(CudaQueue&, const PersistentLaunch&);
extern template void launch_persistent<bf16, Contiguous::along_depth, Contiguous::across>(CudaQueue&, const PersistentLaunch&);
extern template void launch_persistent<bf16, Contiguous::across, Contiguous::across>(CudaQueue&, const PersistentLaunch&);
extern template void launch_persistent<f16, Contiguous::along_depth, Contiguous::along_depth>(CudaQueue&, const PersistentLaunch&);
extern template void launch_persistent<f16, Contiguous::along_depth, Contiguous::across>(CudaQueue&, const PersistentLaunch&);
extern template void launch_persistent<f16, Contiguous::across, Contiguous::across>(CudaQueue&, const PersistentLaunch&);

}  // namespace tilewave
