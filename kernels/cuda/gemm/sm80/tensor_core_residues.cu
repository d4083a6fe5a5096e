// What it adds to tensor_core_persistent: a left operand whose rows start on any element. Rows that are `residues` apart are a multiple
// of 16 bytes apart, so those of one residue are an aligned matrix that begins up to 7 elements early.
// Along depth, a tile's rows are of one residue: depth begins early, where both operands are zero, and the right operand moves along.
// Across depth, a tile takes depth residue by residue, least shift first: between two of them its sums move down by the difference of
// their shifts, and kTensorCoreResiduesMargin lines of the tile are not D's.
#include <algorithm>
#include <array>

#include "kernels/cuda/gemm/sm80/stage_feed.h"
#include "kernels/gemm/sm80/tensor_core_residues.h"

namespace tilewave {
namespace {

struct Residue {
  int row = 0;    // the first of its rows
  int shift = 0;  // elements from the 16 bytes before a row's start to it
};
struct ResidueProblem {
  TileProblem gemm;
  int residues = 1;
  std::array<Residue, kMaxResidues> of;  // the least shift first
};

// The sums of each line go to the line `by` below it, over the ends of warps too.
template <class Cta>
__device__ __forceinline__ void move_down(WarpTile<Cta>& tile, int by, int warp, int lane) {
  constexpr int kCtasPerSm = 2 * WarpTile<Cta>::kDown;  // of 8 lines
  constexpr int kAcross = WarpTile<Cta>::kAcross;
  __shared__ float2 ends[Cta::threads / 32][kAcross][32];  // the last 8 lines of each warp
  static_assert(sizeof(ends) == kTensorCoreResiduesEndsBytes, "the plan and the kernel agree on the ends");
#pragma unroll
  for (int j = 0; j < kAcross; ++j) {
    const float(&last)[4] = tile.accumulators[WarpTile<Cta>::kDown - 1][j];
    ends[warp][j][lane] = make_float2(last[2], last[3]);
  }
  __syncthreads();
  const bool wraps = lane / 4 + by >= 8;
  const int from = (lane / 4 + 8 - by) % 8 * 4 + lane % 4;
#pragma unroll
  for (int j = 0; j < kAcross; ++j) {
    const float2 before = warp >= Cta::warps_across ? ends[warp - Cta::warps_across][j][lane] : make_float2(0.0f, 0.0f);
#pragma unroll
    for (int b = kCtasPerSm - 1; b >= 0; --b) {
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        const float above = b > 0 ? tile.accumulators[(b > 0 ? b - 1 : 0) / 2][j][(b + 1) % 2 * 2 + c] : c == 0 ? before.x : before.y;
        float& sum = tile.accumulators[b / 2][j][b % 2 * 2 + c];
        sum = __shfl_sync(~0u, wraps ? above : sum, from);
      }
    }
  }
}

template <class Cta>
__global__ void __launch_bounds__(Cta::threads, 2) tensor_core_residues(const __grid_constant__ ResidueProblem p) {
  constexpr int kStages = kTensorCoreResiduesStages;
  constexpr bool kAlongDepth = Cta::Left::kAlongDepth;
  extern __shared__ __align__(128) char stages[];
  static_assert(WarpTile<Cta>::kSlabBytes * Cta::threads / 32 <= kStages * Cta::stage_bytes, "the slabs of all warps fit the ring");
  const TileProblem& gemm = p.gemm;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const int warp_row = warp / Cta::warps_across * Cta::warp_rows, warp_col = warp % Cta::warps_across * Cta::warp_cols;
  const std::uint32_t ring = shared_address(stages);
  const TileCoord coord = tile_coord(gemm, static_cast<int>(blockIdx.x));
  const std::int64_t col = std::int64_t{coord.col} * Cta::cols;
  const int group = coord.row / p.residues;  // of rows of one residue
  const int phases = kAlongDepth ? 1 : p.residues;
  const int blocks = gemm.depth_of_slice / Cta::Left::kDepth;  // of a phase

  // Prologue.
  StageFeed<Cta, kStages, Head::cut> feed(ring, thread);
  int next_phase = 0;
  const auto aim = [&] {
    if (next_phase >= phases) return feed.stop();
    const Residue& residue = p.of[kAlongDepth ? coord.row % p.residues : next_phase];
    TileOperand left = gemm.left, right = gemm.right;
    left.data = static_cast<const typename Cta::Element*>(left.data) + residue.row * left.ld - residue.shift;
    left.ld *= p.residues;
    if constexpr (kAlongDepth) {
      left.extent = (left.extent - residue.row + p.residues - 1) / p.residues;
      right.data = static_cast<const typename Cta::Element*>(right.data) - residue.shift * right.ld;
      feed.aim({.left = left,
                .right = right,
                .row = std::int64_t{group} * Cta::rows,
                .col = col,
                .blocks = blocks,
                .from = static_cast<int>(blockIdx.y) * gemm.depth_of_slice,
                .begin = residue.shift,
                .end = gemm.depth + residue.shift});
    } else {
      left.extent += residue.shift;
      right.data = static_cast<const typename Cta::Element*>(right.data) + residue.row * right.ld;
      right.ld *= p.residues;
      feed.aim({.left = left,
                .right = right,
                .row = std::int64_t{coord.row} * (Cta::rows - kTensorCoreResiduesMargin),
                .col = col,
                .blocks = blocks,
                .end = (gemm.depth - residue.row + p.residues - 1) / p.residues});
    }
  };
  const auto next_run = [&] {
    ++next_phase;
    aim();
  };
  aim();
  feed.fill(next_run);

  // Main loop.
  const auto stage_at = [&](int stage) { return ring + static_cast<std::uint32_t>(stage * Cta::stage_bytes); };
  Fragments<Cta> fragments[2];
  WarpTile<Cta> tile;
  tile.clear();
  fragments[0].load(stage_at(0), warp_row, warp_col, 0, lane);
  int next = 0;
#pragma unroll 1
  for (int phase = 0; phase < phases; ++phase) {
#pragma unroll 1
    for (int block = 0; block < blocks; ++block) {
      const int here = next;
      next = next + 1 == kStages ? 0 : next + 1;
      multiply_k_tile<false>(tile, fragments, stage_at(here), stage_at(next), warp_row, warp_col, lane, kNoRows, feed, next_run);
    }
    if constexpr (!kAlongDepth) {
      if (phase + 1 < phases) move_down(tile, p.of[phase + 1].shift - p.of[phase].shift, warp, lane);
    }
  }

  // Epilogue, through the ring.
  cp_async_wait<0>();
  __syncthreads();
  TileLines lines;
  if constexpr (kAlongDepth) {
    const Residue& residue = p.of[coord.row % p.residues];
    lines.first = residue.row + std::int64_t{p.residues} * group * Cta::rows;
    lines.stride = p.residues;
    lines.end = static_cast<int>(min((gemm.epilogue.rows - lines.first + p.residues - 1) / p.residues, std::int64_t{Cta::rows}));
  } else {
    const int shift = p.of[p.residues - 1].shift, height = Cta::rows - kTensorCoreResiduesMargin;
    lines.first = std::int64_t{coord.row} * height - shift;
    lines.begin = shift;
    lines.end = static_cast<int>(min(gemm.epilogue.rows - lines.first, std::int64_t{shift + height}));
  }
  float* const slab = reinterpret_cast<float*>(stages + warp * WarpTile<Cta>::kSlabBytes);
  finish_tile(tile, gemm, lines, blockIdx.y, kNoRows, slab, warp_row, col + warp_col, lane);
}

template <class T, Contiguous kLeft>
void launch(CudaQueue& queue, const ResidueProblem& problem) {
  using Cta = CtaTile<T, kTensorCoreResiduesTile.n, kTensorCoreResiduesTile.m, 2, 2, kLeft, Contiguous::across>;
  constexpr int shared = kTensorCoreResiduesStages * Cta::stage_bytes;
  static_assert(shared == kTensorCoreResiduesRingBytes, "the plan and the kernel agree on the stages");
  const auto kernel = tensor_core_residues<Cta>;
  TW_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
  const dim3 grid(static_cast<unsigned>(problem.gemm.tiles_down * problem.gemm.tiles_across), static_cast<unsigned>(problem.gemm.split));
  kernel<<<grid, Cta::threads, shared, stream_of(queue)>>>(problem);
  TW_CUDA_LAUNCHED("gemm tensor_core_residues");
}

template <class T>
void launch(CudaQueue& queue, const ResidueProblem& problem, Contiguous left) {
  if (left == Contiguous::along_depth) return launch<T, Contiguous::along_depth>(queue, problem);
  launch<T, Contiguous::across>(queue, problem);
}

}  // namespace

void launch_tensor_core_residues(CudaQueue& queue, const GemmCall& call) {
  constexpr std::int64_t kDepth = kDepthBytes / 2;
  const Contiguous left = contiguous_of(call.args).left;
  ResidueProblem problem = {.gemm = tile_problem_of(call, kDepth)};
  TileProblem& gemm = problem.gemm;
  const ResidueTiling tiling =
      residue_tiling(gemm.epilogue.rows, gemm.left.alignment, left == Contiguous::along_depth, kTensorCoreResiduesTile.n);
  problem.residues = static_cast<int>(tiling.residues);
  gemm.tiles_down = static_cast<int>(tiling.tiles_down);
  const std::int64_t depth = left == Contiguous::along_depth ? gemm.depth + kMaxResidues - 1 : ceil_div(gemm.depth, tiling.residues);
  gemm.depth_of_slice = static_cast<int>(round_up(ceil_div(depth, gemm.split), kDepth));
  for (int row = 0; row < problem.residues; ++row) {
    const auto start = reinterpret_cast<std::uintptr_t>(gemm.left.data) + static_cast<std::uintptr_t>(2 * row * gemm.left.ld);
    problem.of[static_cast<std::size_t>(row)] = {.row = row, .shift = static_cast<int>(start % 16 / 2)};
  }
  std::sort(problem.of.begin(), problem.of.begin() + problem.residues,
            [](const Residue& a, const Residue& b) { return a.shift != b.shift ? a.shift < b.shift : a.row < b.row; });
  with_half(call.args.a.dtype, "gemm tensor_core_residues", [&]<class T>(T) { launch<T>(queue, problem, left); });
  if (gemm.split > 1) reduce_split_k(queue, gemm.epilogue, gemm.parts, gemm.split);
}

}  // namespace tilewave
