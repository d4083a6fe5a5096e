// What it adds to shared_memory_tiles: warps multiply with mma.sync, whose operands ldmatrix brings from shared memory in either
// major. A block fills its one stage, waits, and uses it; rows may start anywhere.
#include "kernels/cuda/gemm/sm80/warp_tile.h"
#include "kernels/gemm/ladder/tensor_core.h"

namespace tilewave {
namespace {

template <class Cta>
__global__ void __launch_bounds__(Cta::threads) tensor_core(const __grid_constant__ TileProblem p) {
  using T = typename Cta::Element;
  __shared__ __align__(128) char stage[Cta::stage_bytes];
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const int warp_row = warp / Cta::warps_across * Cta::warp_rows, warp_col = warp % Cta::warps_across * Cta::warp_cols;
  const TileCoord coord = tile_coord(p, static_cast<int>(blockIdx.x));
  const TileCopy<typename Cta::Left, Cta::threads> left(p.left, std::int64_t{coord.row} * Cta::rows, p.depth, thread);
  const TileCopy<typename Cta::Right, Cta::threads> right(p.right, std::int64_t{coord.col} * Cta::cols, p.depth, thread);
  const auto fill = [](const auto& copy, const TileOperand& operand, char* tile, int from) {
    constexpr int kChunk = Cta::Left::kChunk;
#pragma unroll
    for (int x = 0; x < copy.kCopies; ++x) {
      const T* const source = reinterpret_cast<const T*>(copy.at(x, from));
      const int valid = copy.valid(x, from);
      alignas(16) T chunk[kChunk] = {};
      if (valid == kChunk && operand.alignment == 16) {
        *reinterpret_cast<uint4*>(chunk) = *reinterpret_cast<const uint4*>(source);
      } else {
#pragma unroll
        for (int c = 0; c < kChunk; ++c) {
          if (c < valid) chunk[c] = source[c];
        }
      }
      *reinterpret_cast<uint4*>(tile + copy.target(x)) = *reinterpret_cast<const uint4*>(chunk);
    }
  };

  const int row_sum_rank = p.sum_rows && coord.col == 0 ? warp % Cta::warps_across : kNoRows;
  Fragments<Cta> fragments;
  WarpTile<Cta, true> tile;
  tile.clear();
  const int first = static_cast<int>(blockIdx.y) * p.depth_of_slice;
  for (int from = first; from < first + p.depth_of_slice; from += Cta::Left::kDepth) {
    fill(left, p.left, stage, from);
    fill(right, p.right, stage + Cta::Left::kBytes, from);
    __syncthreads();
#pragma unroll
    for (int step = 0; step < Cta::steps; ++step) {
      fragments.load(shared_address(stage), warp_row, warp_col, step, lane);
      tile.multiply(fragments);
      if (row_sum_rank != kNoRows) tile.sum_rows(fragments, row_sum_rank, lane);
    }
    __syncthreads();
  }

  // Epilogue, through the stage.
  static_assert(WarpTile<Cta>::kSlabBytes * Cta::threads / 32 <= Cta::stage_bytes, "the slabs of all warps fit the stage");
  float* const slab = reinterpret_cast<float*>(stage + warp * WarpTile<Cta>::kSlabBytes);
  finish_tile(tile, p, lines_from(std::int64_t{coord.row} * Cta::rows, p.epilogue.rows), blockIdx.y, row_sum_rank, slab, warp_row,
              std::int64_t{coord.col} * Cta::cols + warp_col, lane);
}

template <class T, Contiguous kLeft, Contiguous kRight>
void launch(CudaQueue& queue, const TileProblem& problem) {
  using Cta = CtaTile<T, kTensorCoreTile.n, kTensorCoreTile.m, 2, 4, kLeft, kRight>;
  const dim3 grid(static_cast<unsigned>(problem.tiles_down * problem.tiles_across), static_cast<unsigned>(problem.split));
  tensor_core<Cta><<<grid, Cta::threads, 0, stream_of(queue)>>>(problem);
  TW_CUDA_LAUNCHED("gemm tensor_core");
}

template <class T>
void launch(CudaQueue& queue, const TileProblem& problem, const Contiguities& contiguous) {
  using enum Contiguous;
  const auto [left, right] = contiguous;
  if (left == along_depth && right == along_depth) return launch<T, along_depth, along_depth>(queue, problem);
  if (left == along_depth) return launch<T, along_depth, across>(queue, problem);
  if (right == along_depth) return launch<T, across, along_depth>(queue, problem);
  launch<T, across, across>(queue, problem);
}

}  // namespace

void launch_tensor_core(CudaQueue& queue, const GemmCall& call) {
  const TileProblem problem = tile_problem_of(call, kDepthBytes / size_of(call.args.a.dtype));
  if (call.args.a.dtype == DType::f32) {
    launch<float>(queue, problem, contiguous_of(call.args));
  } else {
    with_half(call.args.a.dtype, "gemm tensor_core", [&]<class T>(T) { launch<T>(queue, problem, contiguous_of(call.args)); });
  }
  if (call.plan.split > 1) reduce_split_k(queue, problem.epilogue, problem.parts, call.plan.split);
}

}  // namespace tilewave
