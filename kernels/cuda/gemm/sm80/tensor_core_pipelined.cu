// What it adds to tensor_core: cp.async fills a ring of stages in swizzled shared memory ahead of the products, and fragments of a
// step are read while the one before it is multiplied. Rows that start on less than 16 bytes are copied in words of 8 or 4, and
// those that start on any 16-bit element are put right in shared memory.
#include "kernels/cuda/gemm/sm80/warp_tile.h"
#include "kernels/gemm/sm80/tensor_core_pipelined.h"

namespace tilewave {
namespace {

// Lines that start on any 16-bit element are copied as the 4-byte words that they touch: where a chunk starts in the middle of a word,
// its 16 bytes of shared memory begin with a stranger and its last element is in the word after them, `tails` for a line's last chunk.
template <class Copy>
__device__ __forceinline__ bool starts_in_word(const Copy& copy, int x) {
  return reinterpret_cast<std::uintptr_t>(copy.at(x, 0)) % 4 != 0;
}

template <class Tile, class Copy>
__device__ __forceinline__ void start_words(const Copy& copy, std::uint32_t tile, std::uint32_t tails, int from, int thread) {
#pragma unroll
  for (int x = 0; x < Copy::kCopies; ++x) {
    const int shift = starts_in_word(copy, x) ? 1 : 0;
    const char* const source = copy.at(x, from) - 2 * shift;
    const int bytes = 2 * (copy.line_rest(x, from) + shift);
#pragma unroll
    for (int w = 0; w < 4; ++w) cp_async<4>(tile + copy.target(x) + 4 * w, source + 4 * w, min(max(bytes - 4 * w, 0), 4));
    const int line = thread / Tile::kChunks + x * Copy::kStep;
    if (shift != 0 && thread % Tile::kChunks == Tile::kChunks - 1) cp_async<4>(tails + 4 * line, source + 16, min(max(bytes - 16, 0), 4));
  }
}

// Shifts the chunks of a stage that has arrived into place; a line's threads are of one warp.
template <class Tile, class Copy>
__device__ __forceinline__ void realign(const Copy& copy, char* tile, const char* tails, int thread) {
#pragma unroll
  for (int x = 0; x < Copy::kCopies; ++x) {
    const int line = thread / Tile::kChunks + x * Copy::kStep, chunk = thread % Tile::kChunks;
    uint4* const mine = reinterpret_cast<uint4*>(tile + copy.target(x));
    const uint4 w = *mine;
    const char* const after = chunk + 1 < Tile::kChunks ? tile + Tile::offset(line, chunk + 1) : tails + 4 * line;
    const std::uint32_t next = *reinterpret_cast<const std::uint32_t*>(after);
    __syncwarp();
    if (!starts_in_word(copy, x)) continue;
    *mine = make_uint4(__byte_perm(w.x, w.y, 0x5432), __byte_perm(w.y, w.z, 0x5432), __byte_perm(w.z, w.w, 0x5432),
                       __byte_perm(w.w, next, 0x5432));
  }
}

// Which copies a kernel knows: 16 bytes for both operands, or whatever each operand's rows allow.
enum class CopyWidth { wide, any };

template <class Copy>
__device__ __forceinline__ void start_narrow(const Copy& copy, const TileOperand& operand, std::uint32_t tile, int from) {
  if (operand.alignment >= 16) {
    copy.template start<16>(tile, from);
  } else if (operand.alignment == 8) {
    copy.template start<8>(tile, from);
  } else if (operand.alignment == 4) {
    copy.template start<4>(tile, from);
  }
}

template <class Cta, CopyWidth kCopyWidth>
__global__ void __launch_bounds__(Cta::threads, 1) tensor_core_pipelined(const __grid_constant__ TileProblem p) {
  constexpr int kStages = kTensorCorePipelinedStages;
  extern __shared__ __align__(128) char stages[];
  static_assert(WarpTile<Cta>::kSlabBytes * Cta::threads / 32 <= kStages * Cta::stage_bytes, "the slabs of all warps fit the ring");
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const int warp_row = warp / Cta::warps_across * Cta::warp_rows, warp_col = warp % Cta::warps_across * Cta::warp_cols;
  const std::uint32_t ring = shared_address(stages);
  const TileCoord coord = tile_coord(p, static_cast<int>(blockIdx.x));
  const int blocks = p.depth_of_slice / Cta::Left::kDepth, first = static_cast<int>(blockIdx.y) * p.depth_of_slice;

  // Prologue.
  using LeftCopy = TileCopy<typename Cta::Left, Cta::threads>;
  using RightCopy = TileCopy<typename Cta::Right, Cta::threads>;
  const LeftCopy left(p.left, std::int64_t{coord.row} * Cta::rows, p.depth, thread);
  const RightCopy right(p.right, std::int64_t{coord.col} * Cta::cols, p.depth, thread);
  constexpr bool kByElement = kCopyWidth == CopyWidth::any && sizeof(typename Cta::Element) == 2;
  const bool left_by_element = kByElement && p.left.alignment == 2, right_by_element = kByElement && p.right.alignment == 2;
  char* const tails = stages + kStages * Cta::stage_bytes;  // of each stage's left and right tile, a word a line
  const auto left_tails = [&](int block) { return tails + block % kStages * 2 * kTensorCorePipelinedTailBytes; };
  const auto right_tails = [&](int block) { return left_tails(block) + kTensorCorePipelinedTailBytes; };
  const auto start = [&](int block) {
    const int from = first + block * Cta::Left::kDepth;
    const std::uint32_t stage = ring + static_cast<std::uint32_t>(block % kStages * Cta::stage_bytes);
    if (block < blocks) {
      if constexpr (kCopyWidth == CopyWidth::wide) {
        left.start(stage, from);
        right.start(stage + Cta::Left::kBytes, from);
      } else {
        start_narrow(left, p.left, stage, from);
        start_narrow(right, p.right, stage + Cta::Left::kBytes, from);
      }
      if constexpr (kByElement) {
        if (left_by_element) start_words<typename Cta::Left>(left, stage, shared_address(left_tails(block)), from, thread);
        if (right_by_element) {
          start_words<typename Cta::Right>(right, stage + Cta::Left::kBytes, shared_address(right_tails(block)), from, thread);
        }
      }
    }
    cp_async_commit();
  };
  // Waits until the block of depth has arrived, for every thread.
  const auto await = [&](int block) {
    cp_async_wait<kStages - 2>();
    if constexpr (kByElement) {
      char* const stage = stages + block % kStages * Cta::stage_bytes;
      __syncwarp();
      if (left_by_element) realign<typename Cta::Left>(left, stage, left_tails(block), thread);
      if (right_by_element) realign<typename Cta::Right>(right, stage + Cta::Left::kBytes, right_tails(block), thread);
    }
    __syncthreads();
  };
#pragma unroll
  for (int block = 0; block < kStages - 1; ++block) start(block);
  await(0);

  // Main loop.
  const int row_sum_rank = p.sum_rows && coord.col == 0 ? warp % Cta::warps_across : kNoRows;
  Fragments<Cta> fragments[2];
  WarpTile<Cta, true> tile;
  tile.clear();
  fragments[0].load(ring, warp_row, warp_col, 0, lane);
  for (int block = 0; block < blocks; ++block) {
    const std::uint32_t here = ring + static_cast<std::uint32_t>(block % kStages * Cta::stage_bytes);
    const std::uint32_t next = ring + static_cast<std::uint32_t>((block + 1) % kStages * Cta::stage_bytes);
#pragma unroll
    for (int step = 0; step < Cta::steps; ++step) {
      const bool last = step + 1 == Cta::steps;
      if (last) await(block + 1);
      fragments[(step + 1) % 2].load(last ? next : here, warp_row, warp_col, (step + 1) % Cta::steps, lane);
      if (step == 0) start(block + kStages - 1);
      tile.multiply(fragments[step % 2]);
      if (row_sum_rank != kNoRows) tile.sum_rows(fragments[step % 2], row_sum_rank, lane);
    }
  }

  // Epilogue, through the ring.
  cp_async_wait<0>();
  __syncthreads();
  float* const slab = reinterpret_cast<float*>(stages + warp * WarpTile<Cta>::kSlabBytes);
  finish_tile(tile, p, lines_from(std::int64_t{coord.row} * Cta::rows, p.epilogue.rows), blockIdx.y, row_sum_rank, slab, warp_row,
              std::int64_t{coord.col} * Cta::cols + warp_col, lane);
}

template <class T, Contiguous kLeft, Contiguous kRight, CopyWidth kCopyWidth>
void launch(CudaQueue& queue, const TileProblem& problem) {
  using Cta = CtaTile<T, kTensorCorePipelinedTile.n, kTensorCorePipelinedTile.m, 2, 4, kLeft, kRight>;
  constexpr int shared = kTensorCorePipelinedStages * (Cta::stage_bytes + 2 * kTensorCorePipelinedTailBytes);
  static_assert(shared == kTensorCorePipelinedSharedBytes, "the plan and the kernel agree on the stages");
  const auto kernel = tensor_core_pipelined<Cta, kCopyWidth>;
  TW_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
  const dim3 grid(static_cast<unsigned>(problem.tiles_down * problem.tiles_across), static_cast<unsigned>(problem.split));
  kernel<<<grid, Cta::threads, shared, stream_of(queue)>>>(problem);
  TW_CUDA_LAUNCHED("gemm tensor_core_pipelined");
}

template <class T, CopyWidth kCopyWidth>
void launch(CudaQueue& queue, const TileProblem& problem, Contiguous left, Contiguous right) {
  using enum Contiguous;
  if (left == along_depth && right == along_depth) return launch<T, along_depth, along_depth, kCopyWidth>(queue, problem);
  if (left == along_depth) return launch<T, along_depth, across, kCopyWidth>(queue, problem);
  if (right == along_depth) return launch<T, across, along_depth, kCopyWidth>(queue, problem);
  launch<T, across, across, kCopyWidth>(queue, problem);
}

}  // namespace

void launch_tensor_core_pipelined(CudaQueue& queue, const GemmCall& call) {
  const TileProblem problem = tile_problem_of(call, kDepthBytes / size_of(call.args.a.dtype));
  const auto [left, right] = contiguous_of(call.args);
  const bool wide = problem.left.alignment == 16 && problem.right.alignment == 16;
  if (call.args.a.dtype == DType::f32) {
    launch<float, CopyWidth::any>(queue, problem, left, right);
  } else {
    with_half(call.args.a.dtype, "gemm tensor_core_pipelined", [&]<class T>(T) {
      if constexpr (std::is_same_v<T, bf16>) {
        if (wide) return launch<T, CopyWidth::wide>(queue, problem, left, right);
      }
      launch<T, CopyWidth::any>(queue, problem, left, right);
    });
  }
  if (call.plan.split > 1) reduce_split_k(queue, problem.epilogue, problem.parts, call.plan.split);
}

}  // namespace tilewave
