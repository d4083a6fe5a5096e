// What it adds to cuda_cores: a block keeps 16 of K of both operands in shared memory for its 128 x 128 outputs, a thread 8 x 8 sums
// in registers, and the next 16 of K are read into registers while these are multiplied.
#include "kernels/cuda/gemm/simt/core_operand.h"
#include "kernels/gemm/simt/shared_memory_tiles.h"

namespace tilewave {
namespace {

constexpr int kSide = kSharedMemoryTile.m, kDepth = kSharedMemoryTilesDepth;
constexpr int kThreads = 256, kLoads = kSide * kDepth / kThreads;
constexpr int kOutputs = 8;  // each way
static_assert(kSharedMemoryTile.n == kSide && (kSide / kOutputs) * (kSide / kOutputs) == kThreads, "a thread has 8 x 8 of the tile");

// A thread's elements of an operand's tile. Neighbouring threads read neighbouring elements, whichever way they lie.
template <class T>
struct TileLoad {
  const T* source;
  std::int64_t across_step, along_step;  // elements from one of the thread's loads to the next
  int across, along, across_by, along_by;
  std::int64_t rest;  // rows (columns) from the thread's first on
  T held[kLoads];

  __device__ TileLoad(const CoreOperand& operand, std::int64_t first, std::int64_t extent, int thread) {
    const bool along_depth = operand.along == 1;
    across = along_depth ? thread / kDepth : thread % kSide;
    along = along_depth ? thread % kDepth : thread / kSide;
    across_by = along_depth ? kThreads / kDepth : 0;
    along_by = along_depth ? 0 : kThreads / kSide;
    across_step = operand.across * across_by;
    along_step = operand.along * along_by;
    rest = extent - first - across;
    source = static_cast<const T*>(operand.data) + (first + across) * operand.across + along * operand.along;
  }
  __device__ void read(const CoreOperand& operand, std::int64_t from, std::int64_t end) {
#pragma unroll
    for (int x = 0; x < kLoads; ++x) {
      const bool inside = x * across_by < rest && from + along + x * along_by < end;
      held[x] = inside ? source[from * operand.along + x * (across_step + along_step)] : store<T>(0);
    }
  }
  __device__ void write(Arithmetic<T> (&tile)[kDepth][kSide + 4]) const {
#pragma unroll
    for (int x = 0; x < kLoads; ++x) tile[along + x * along_by][across + x * across_by] = load(held[x]);
  }
};

template <class T>
__global__ void __launch_bounds__(kThreads) shared_memory_tiles(const __grid_constant__ CoreProblem<T> p) {
  using Sum = Arithmetic<T>;
  __shared__ __align__(16) Sum left[kDepth][kSide + 4], right[kDepth][kSide + 4];
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t tiles_across = ceil_div(p.epilogue.cols, kSide);
  const std::int64_t first_row = blockIdx.x / tiles_across * kSide, first_col = blockIdx.x % tiles_across * kSide;
  const int my_row = thread / (kSide / kOutputs) * kOutputs, my_col = thread % (kSide / kOutputs) * kOutputs;
  const std::int64_t begin = blockIdx.y * p.depth_of_slice, end = min(begin + p.depth_of_slice, p.depth);
  TileLoad<T> left_load(p.left, first_row, p.epilogue.rows, thread), right_load(p.right, first_col, p.epilogue.cols, thread);

  // Main loop.
  Sum z[kOutputs][kOutputs] = {}, edge_sum = 0;
  const bool sum_left = p.sum_left && first_col == 0 && thread < kSide, sum_right = p.sum_right && first_row == 0 && thread < kSide;
  left_load.read(p.left, begin, end);
  right_load.read(p.right, begin, end);
  for (std::int64_t k = begin; k < end; k += kDepth) {
    left_load.write(left);
    right_load.write(right);
    __syncthreads();
    left_load.read(p.left, k + kDepth, end);
    right_load.read(p.right, k + kDepth, end);
    Sum of_depth = 0;  // by itself first: a long sum then has as many roundings as there are depths
#pragma unroll 4
    for (int d = 0; d < kDepth; ++d) {
      Sum x[kOutputs], y[kOutputs];
#pragma unroll
      for (int i = 0; i < kOutputs; ++i) {
        x[i] = left[d][my_row + i];
        y[i] = right[d][my_col + i];
      }
#pragma unroll
      for (int i = 0; i < kOutputs; ++i) {
#pragma unroll
        for (int j = 0; j < kOutputs; ++j) z[i][j] += x[i] * y[j];
      }
      if (sum_left) of_depth += left[d][thread];
      if (sum_right) of_depth += right[d][thread];
    }
    edge_sum += of_depth;
    __syncthreads();
  }

  // Epilogue. Each thread's rows pass through its own place in shared memory, one after another: registers have no run-time index.
  Sum* const mine = &left[0][0] + thread * kOutputs;
  static_assert(kThreads * kOutputs <= kDepth * (kSide + 4), "every thread has a place for a row");
  const auto finish_rows = [&](const GemmEpilogue& e) {
#pragma unroll 1
    for (int i = 0; i < kOutputs; ++i) {
#pragma unroll
      for (int which = 0; which < kOutputs; ++which) {
        if (which != i) continue;
#pragma unroll
        for (int j = 0; j < kOutputs; ++j) mine[j] = z[which][j];
      }
      const std::int64_t row = first_row + my_row + i, col = first_col + my_col;
      if (row >= e.rows) continue;
      if (e.wide && col + kRun <= e.cols) {
        Sum run[kRun];
#pragma unroll
        for (int j = 0; j < kOutputs; ++j) run[j] = mine[j];
        finish(e, row, col, run);
      } else {
#pragma unroll 1
        for (int j = 0; j < kOutputs && col + j < e.cols; ++j) {
          Sum one[1] = {mine[j]};
          finish(e, row, col + j, one);
        }
      }
    }
    if (sum_left && first_row + thread < e.rows) finish_bias_gradient(e, first_row + thread, edge_sum);
    if (sum_right && first_col + thread < e.cols) finish_bias_gradient(e, first_col + thread, edge_sum);
  };
  if (p.split == 1) {
    finish_rows(p.epilogue);
  } else {
    finish_rows(p.parts.of_part(p.epilogue, blockIdx.y));
  }
}

}  // namespace

void launch_shared_memory_tiles(CudaQueue& queue, const GemmCall& call) {
  with_float(call.args.a.dtype, "gemm", [&]<class T>(T) {
    const CoreProblem<T> problem = core_problem_of<T>(call, kDepth);
    const dim3 grid(static_cast<unsigned>(call.plan.tiling.tiles), static_cast<unsigned>(call.plan.split));
    shared_memory_tiles<T><<<grid, kThreads, 0, stream_of(queue)>>>(problem);
    TW_CUDA_LAUNCHED("gemm shared_memory_tiles");
    if (call.plan.split > 1) reduce_split_k(queue, problem.epilogue, problem.parts, call.plan.split);
  });
}

}  // namespace tilewave
