// The kernel of the row tensor_core_persistent. What it adds to tensor_core_pipelined: one wave of blocks that walk over the tiles
// by a raster; the ring of stages flows on from one tile into the next, so that copies never stop for an epilogue, which uses the
// one stage that is free. Tiles that whole waves leave are taken in parts of K, whose sums a second kernel adds in order.
#pragma once

#include "kernels/cuda/gemm/sm80/persistent_problem.h"
#include "kernels/cuda/gemm/sm80/stage_feed.h"
#include "kernels/cuda/gemm/sm80/warp_runs.h"
#include "kernels/gemm/facts/with_tile.h"
#include "kernels/gemm/sm80/tensor_core_persistent.h"

namespace tilewave {

template <class Cta, int kStages, int kCtasPerSm>
__global__ void __launch_bounds__(Cta::threads, kCtasPerSm) tensor_core_persistent(const __grid_constant__ PersistentProblem p) {
  extern __shared__ __align__(128) char stages[];
  static_assert(WarpTile<Cta>::kSlabBytes * Cta::threads / 32 <= Cta::stage_bytes, "the slabs of all warps fit a stage");
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const int warp_row = warp / Cta::warps_across * Cta::warp_rows, warp_col = warp % Cta::warps_across * Cta::warp_cols;
  const std::uint32_t ring = shared_address(stages);
  const auto row_sum_rank_at = [&](const TileCoord& coord) {
    return WarpTile<Cta>::kSums && p.sum_rows && coord.col == 0 ? warp % Cta::warps_across : kNoRows;
  };

  // The copies' own walk over the items. Past the last one they rest.
  StageFeed<Cta, kStages> feed(ring, thread);
  int next_item = static_cast<int>(blockIdx.x);
  const auto aim = [&] {
    if (next_item >= p.items) return feed.stop();
    const StagesOfK part = depth_of_item(p, next_item);
    const TileCoord coord = coord_of_item(p, next_item);
    feed.aim({.left = p.left,
              .right = p.right,
              .row = std::int64_t{coord.row} * Cta::rows,
              .col = std::int64_t{coord.col} * Cta::cols,
              .blocks = part.end - part.begin,
              .from = part.begin * Cta::Left::kDepth,
              .end = p.depth});
  };
  const auto next_run = [&] {
    next_item += static_cast<int>(gridDim.x);
    aim();
  };
  aim();
  feed.fill(next_run);

  const auto stage_at = [&](int stage) { return ring + static_cast<std::uint32_t>(stage * Cta::stage_bytes); };
  Fragments<Cta> fragments[2];
  WarpTile<Cta> tile;
  int here = 0, next = 0;
#pragma unroll 1
  for (int item = static_cast<int>(blockIdx.x); item < p.items; item += static_cast<int>(gridDim.x)) {
    const StagesOfK part = depth_of_item(p, item);
    const TileCoord coord = coord_of_item(p, item);
    const int row_sum_rank = row_sum_rank_at(coord);
    if (item < p.whole_tiles) {
      prefetch_sides<Cta::rows, Cta::cols, Cta::threads>(p.epilogue, std::int64_t{coord.row} * Cta::rows,
                                                         std::int64_t{coord.col} * Cta::cols, thread);
    }
    tile.clear();
    fragments[0].load(stage_at(next), warp_row, warp_col, 0, lane);
    const auto multiply = [&]<bool kSumRows>() {
#pragma unroll 1
      for (int left = part.end - part.begin; left > 0; --left) {
        here = next;
        next = next + 1 == kStages ? 0 : next + 1;
        multiply_k_tile<kSumRows>(tile, fragments, stage_at(here), stage_at(next), warp_row, warp_col, lane, row_sum_rank, feed, next_run);
      }
    };
    if (WarpTile<Cta>::kSums && row_sum_rank != kNoRows) {
      multiply.template operator()<WarpTile<Cta>::kSums>();
    } else {
      multiply.template operator()<false>();
    }

    // Epilogue, where it computes and at D's edges through the stage `here`, which no warp reads any more and no copy fills yet.
    const GemmEpilogue& e = p.epilogue;
    const std::int64_t col = std::int64_t{coord.col} * Cta::cols;
    const TileLines lines = lines_from(std::int64_t{coord.row} * Cta::rows, e.rows);
    if (item >= p.whole_tiles) {
      store_tile_partial(tile, p.parts, item - p.whole_tiles, lines_from(0, Cta::rows), row_sum_rank, warp_row, warp_col, lane);
    } else if (p.accumulators_alone && e.wide && col + Cta::cols <= e.cols) {
      store_runs(tile, e.d, lines, warp_row, col + warp_col, lane);
      tile.for_each_row_sum(lines, warp_row, row_sum_rank, lane, [&](std::int64_t n, float sum) { finish_bias_gradient(e, n, sum); });
    } else {
      float* const slab = reinterpret_cast<float*>(stages + here * Cta::stage_bytes + warp * WarpTile<Cta>::kSlabBytes);
      finish_tile(tile, e, lines, row_sum_rank, slab, warp_row, col + warp_col, lane);
      __syncthreads();
    }
  }
  cp_async_wait<0>();
}

template <class T, Contiguous kLeft, Contiguous kRight, int kRows, int kCols>
void launch_persistent(CudaQueue& queue, const PersistentLaunch& launch) {
  constexpr TensorCoreConfig config = tensor_core_persistent_config(kRows, kCols);
  using Cta = CtaTile<T, kRows, kCols, config.warps_down, config.warps_across, kLeft, kRight>;
  constexpr int shared = config.stages * Cta::stage_bytes;
  static_assert(shared == tensor_core_shared_bytes(kRows, kCols, config.stages), "the plan and the kernel agree on the stages");
  const auto kernel = tensor_core_persistent<Cta, config.stages, config.blocks>;
  TW_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
  kernel<<<static_cast<unsigned>(launch.grid), Cta::threads, shared, stream_of(queue)>>>(launch.problem);
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
