// The kernel of the row tensor_core_persistent. What it adds to tensor_core_pipelined: one wave of blocks that walk over the tiles
// by a raster; the ring of stages flows on from one tile into the next, so that copies never stop for an epilogue, which uses the
// one stage that is free.
#pragma once

#include "kernels/cuda/gemm/warp_tile.h"
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

  // The copies' own walk over the items, kStages - 1 blocks of depth ahead of the products'. Past the last item they bring zeros.
  using LeftCopy = TileCopy<typename Block::Left, Block::threads>;
  using RightCopy = TileCopy<typename Block::Right, Block::threads>;
  LeftCopy left;
  RightCopy right;
  typename LeftCopy::Stage left_stage;
  typename RightCopy::Stage right_stage;
  int next_item = static_cast<int>(blockIdx.x), next_from = 0, next_end = 0, next_stage = 0;
  const auto begin_item = [&] {
    const TilePlace place = place_of(p, next_item % tiles);
    left = LeftCopy(p.left, std::int64_t{place.row} * Block::rows, p.depth, thread);
    right = RightCopy(p.right, std::int64_t{place.col} * Block::cols, p.depth, thread);
    next_from = next_item < items ? next_item / tiles * p.depth_of_part : p.depth;
    next_end = next_item < items ? next_from + p.depth_of_part : -1;
  };
  begin_item();
  left_stage = left.stage(next_from);
  right_stage = right.stage(next_from);
  // Copies [first, last) of a stage, left's and then right's.
  constexpr int kCopies = LeftCopy::kCopies + RightCopy::kCopies;
  const auto copy = [&](int first, int last) {
    const std::uint32_t tile = ring + static_cast<std::uint32_t>(next_stage * Block::stage_bytes);
#pragma unroll
    for (int x = 0; x < kCopies; ++x) {
      if (x < first || x >= last) continue;
      if (x < LeftCopy::kCopies) {
        left.start_one(x, tile, left_stage);
      } else {
        right.start_one(x - LeftCopy::kCopies, tile + Block::Left::kBytes, right_stage);
      }
    }
  };
  const auto commit = [&] {
    cp_async_commit();
    next_stage = next_stage + 1 == kStages ? 0 : next_stage + 1;
    if (next_end < 0) return;
    next_from += Block::Left::kDepth;
    if (next_from == next_end) {
      next_item += static_cast<int>(gridDim.x);
      begin_item();
    }
    left_stage = left.stage(next_from);
    right_stage = right.stage(next_from);
  };

  for (int s = 0; s < kStages - 1; ++s) {
    copy(0, kCopies);
    commit();
  }
  cp_async_wait<kStages - 2>();
  __syncthreads();

  // A step of depth is cut into pairs of mma columns. While a pair is multiplied, the next pair's fragment is read, a share of the next
  // step's rows, and a share of the copies is started.
  constexpr int kDown = Block::warp_rows / 16, kPairs = Block::warp_cols / 16, kSlots = Block::steps * kPairs;
  std::uint32_t rows[2][kDown][4], cols[2][4];
  const std::uint32_t left_lane = Block::Left::left_lane(warp_row, lane);
  const std::uint32_t right_lane = Block::Left::kBytes + Block::Right::right_lane(warp_col, lane);
#pragma unroll
  for (int i = 0; i < kDown; ++i) Block::Left::load(rows[0][i], ring + left_lane, i, 0);
  Block::Right::load(cols[0], ring + right_lane, 0, 0);
  WarpTile<Block> tile;
  int stage = 0;
  for (int item = static_cast<int>(blockIdx.x); item < items; item += static_cast<int>(gridDim.x)) {
    const TilePlace place = place_of(p, item % tiles);
    const bool sum_rows = p.sum_rows && place.col == 0 && warp_col == 0;
    tile.clear();
    std::uint32_t here = ring;
    for (int block = 0; block < blocks; ++block) {
      here = ring + static_cast<std::uint32_t>(stage * Block::stage_bytes);
      stage = stage + 1 == kStages ? 0 : stage + 1;
      const std::uint32_t next = ring + static_cast<std::uint32_t>(stage * Block::stage_bytes);
#pragma unroll
      for (int slot = 0; slot < kSlots; ++slot) {
        const int step = slot / kPairs, pair = slot % kPairs, next_step = (step + 1) % Block::steps;
        const bool last = slot + 1 == kSlots;
        if (last) {  // every fragment of this stage is read
          commit();
          cp_async_wait<kStages - 2>();
          __syncthreads();
        } else {
          copy(slot * kCopies / (kSlots - 1), (slot + 1) * kCopies / (kSlots - 1));
        }
        Block::Right::load(cols[(slot + 1) % 2], (last ? next : here) + right_lane, (pair + 1) % kPairs,
                           pair + 1 == kPairs ? next_step : step);
#pragma unroll
        for (int i = 0; i < kDown; ++i) {
          const bool now = step + 1 == Block::steps ? last : i * kPairs / kDown == pair;
          if (now) Block::Left::load(rows[(step + 1) % 2][i], (last ? next : here) + left_lane, i, next_step);
        }
        tile.multiply_pair(rows[step % 2], cols[slot % 2], pair);
        if (pair == 0 && sum_rows) tile.sum_rows_of(rows[step % 2]);
      }
    }

    // Epilogue. Every warp has read the stage `here` before the last barrier.
    float* const slab = reinterpret_cast<float*>(stages + (here - ring) + warp * WarpTile<Block>::kSlabBytes);
    const std::int64_t row = std::int64_t{place.row} * Block::rows + warp_row, col = std::int64_t{place.col} * Block::cols + warp_col;
    if (p.split == 1) {
      tile.finish_all(p.epilogue, slab, row, col, lane);
      if (sum_rows) tile.finish_row_sums(p.epilogue, row, lane);
    } else {
      const GemmEpilogue part = p.parts.of_part(p.epilogue, item / tiles);
      tile.finish_all(part, slab, row, col, lane);
      if (sum_rows) tile.finish_row_sums(part, row, lane);
    }
    __syncthreads();
  }
  cp_async_wait<0>();
}

struct PersistentLaunch {
  TileProblem problem;
  std::int64_t rows = 0, cols = 0;  // of a tile as D lies in memory
  Contiguous right = Contiguous::along_depth;
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

template <class T, Contiguous kLeft>
void launch_persistent(CudaQueue& queue, const PersistentLaunch& launch) {
  if constexpr (kLeft == Contiguous::along_depth) {
    if (launch.right == Contiguous::along_depth) return launch_persistent<T, kLeft, Contiguous::along_depth>(queue, launch);
  }
  launch_persistent<T, kLeft, Contiguous::across>(queue, launch);  // the row refuses a right operand along depth beside a left one across
}

extern template void launch_persistent<bf16, Contiguous::along_depth>(CudaQueue&, const PersistentLaunch&);
extern template void launch_persistent<bf16, Contiguous::across>(CudaQueue&, const PersistentLaunch&);
extern template void launch_persistent<f16, Contiguous::along_depth>(CudaQueue&, const PersistentLaunch&);
extern template void launch_persistent<f16, Contiguous::across>(CudaQueue&, const PersistentLaunch&);

}  // namespace tilewave
