// The global gradient norm: a block of threads sums the squares of one block of rows and columns, a warp the blocks of one tensor,
// one warp the tensors. Who adds what in which order follows from row, logical column and tensor alone.
#include "kernels/cuda/core/rows.h"
#include "kernels/math/gradient_norm.h"
#include "kernels/ops/gradient_norm.h"

namespace tilewave {
namespace {

struct NormTensor {
  MatrixView gradient;
  std::int64_t first_block = 0;  // of all tensors' blocks
  PackAccess access = PackAccess::whole;
};

// As many tensors as a launch's parameters hold.
constexpr int kTensors = 400;
struct NormTable {
  NormTensor tensors[kTensors];
  std::int32_t count = 0;
  std::int64_t first_tensor = 0;
  double *block_sums = nullptr, *tensor_sums = nullptr;
};
static_assert(sizeof(NormTable) <= 32764, "a launch takes 32,764 bytes of parameters");

constexpr int kThreads = 256, kWarps = kThreads / kWarp;

template <class T, PackAccess kAccess>
__device__ __forceinline__ double squares_of_row(const T* row, std::int64_t begin, std::int64_t end) {
  constexpr int kWidth = kPackWidth<T>;
  double sum = 0.0;
#pragma unroll 4
  for (std::int64_t column = begin + threadIdx.x % kWarp * kWidth; column < end; column += kWarp * kWidth) {
    const Pack<T> pack = load_pack<kAccess, kWidth>(row, column, end);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) sum += static_cast<double>(pack.get(i)) * static_cast<double>(pack.get(i));
  }
  return sum;
}

template <class T, PackAccess kAccess>
__device__ __forceinline__ double squares_of_block(const MatrixView& gradient, std::int64_t block) {
  const std::int64_t across = ceil_div(gradient.cols, kGradientNormCols);
  const std::int64_t first_row = block / across * kGradientNormRows, begin = block % across * kGradientNormCols;
  const std::int64_t end_row = min(gradient.rows, first_row + kGradientNormRows), end = min(gradient.cols, begin + kGradientNormCols);
  double sum = 0.0;
  for (std::int64_t r = first_row + threadIdx.x / kWarp; r < end_row; r += kWarps) {
    sum += squares_of_row<T, kAccess>(gradient.row<const T>(r), begin, end);
  }
  return sum;
}

__global__ void __launch_bounds__(kThreads) sum_blocks(const __grid_constant__ NormTable table) {
  __shared__ double scratch[kWarps];
  const std::int64_t block = table.tensors[0].first_block + blockIdx.x;
  int at = 0;
  for (int end = table.count; end - at > 1;) {
    const int middle = (at + end) / 2;
    (table.tensors[middle].first_block <= block ? at : end) = middle;
  }
  const NormTensor& tensor = table.tensors[at];
  const MatrixView gradient = tensor.gradient;
  const std::int64_t local = block - tensor.first_block;
  const bool whole = tensor.access == PackAccess::whole;
  double sum = 0.0;
  if (gradient.dtype == DType::f32) {
    sum =
        whole ? squares_of_block<float, PackAccess::whole>(gradient, local) : squares_of_block<float, PackAccess::narrow>(gradient, local);
  } else {
    sum = whole ? squares_of_block<double, PackAccess::whole>(gradient, local)
                : squares_of_block<double, PackAccess::narrow>(gradient, local);
  }
  sum = fold_group<kThreads>(sum, scratch, Sum());
  if (threadIdx.x == 0) table.block_sums[block] = sum;
}

__global__ void __launch_bounds__(kWarp) sum_tensors(const __grid_constant__ NormTable table) {
  const NormTensor& tensor = table.tensors[blockIdx.x];
  const std::int64_t across = ceil_div(tensor.gradient.cols, kGradientNormCols), down = ceil_div(tensor.gradient.rows, kGradientNormRows);
  const double* const sums = table.block_sums + tensor.first_block;
  double sum = 0.0;
  for (std::int64_t row = threadIdx.x; row < down; row += kWarp) {
    for (std::int64_t i = 0; i < across; ++i) sum += sums[row * across + i];
  }
  sum = fold_warp(sum, Sum());
  if (threadIdx.x == 0) table.tensor_sums[table.first_tensor + blockIdx.x] = sum;
}

struct TensorSums {
  const double* sums = nullptr;
  std::int64_t tensors = 0;
};

__device__ __forceinline__ double sum_by_warp(const TensorSums& all) {
  double sum = 0.0;
  for (std::int64_t i = threadIdx.x; i < all.tensors; i += kWarp) sum += all.sums[i];
  return fold_warp(sum, Sum());
}

__global__ void __launch_bounds__(kWarp) finish(const TensorSums all, double clip_norm, const LossScaling scaling, StepState* state) {
  const double sum = sum_by_warp(all);
  if (threadIdx.x == 0) finish_gradient_norm(sum, clip_norm, scaling, *state);
}

__global__ void __launch_bounds__(kWarp) keep_sum(const TensorSums all, StepState* state) {
  const double sum = sum_by_warp(all);
  if (threadIdx.x == 0) state->sum_of_squares = sum;
}

__global__ void finish_with_sum(double clip_norm, const LossScaling scaling, StepState* state) {
  finish_gradient_norm(state->sum_of_squares, clip_norm, scaling, *state);
}

template <class Args>
TensorSums launch_sums(CudaQueue& queue, const Args& args) {
  const auto tensors = static_cast<std::int64_t>(args.gradients.size());
  const std::int64_t cols = gradient_norm_workspace_cols(args.gradients);
  const MatrixView& workspace = args.workspace;
  TW_CHECK(workspace.dtype == DType::f64 && workspace.rows == 1 && workspace.cols >= cols, args.kOperation, ": the workspace is ",
           name_of(workspace.dtype), " [", workspace.rows, ", ", workspace.cols, "]; on a GPU it must be f64 [1, ", cols, "] or wider.");
  double* const tensor_sums = workspace.row<double>(0);
  std::int64_t block = 0;
  for (std::int64_t first = 0; first < tensors; first += kTensors) {
    NormTable table{.count = static_cast<std::int32_t>(std::min<std::int64_t>(kTensors, tensors - first)),
                    .first_tensor = first,
                    .block_sums = tensor_sums + tensors,
                    .tensor_sums = tensor_sums};
    const std::int64_t first_block = block;
    for (std::int32_t i = 0; i < table.count; ++i) {
      const MatrixView& gradient = args.gradients[static_cast<std::size_t>(first + i)];
      const int width = static_cast<int>(16 / size_of(gradient.dtype));
      table.tensors[i] = {
          .gradient = gradient, .first_block = block, .access = whole_access(access_of(width, {gradient}), gradient.cols, width)};
      block += gradient_norm_blocks(gradient);
    }
    if (block > first_block) {
      sum_blocks<<<static_cast<unsigned>(block - first_block), kThreads, 0, stream_of(queue)>>>(table);
      TW_CUDA_LAUNCHED("sum_blocks");
    }
    sum_tensors<<<static_cast<unsigned>(table.count), kWarp, 0, stream_of(queue)>>>(table);
    TW_CUDA_LAUNCHED("sum_tensors");
  }
  return {.sums = tensor_sums, .tensors = tensors};
}

}  // namespace

void run(CudaQueue& queue, const GradientNormArgs& args) {
  check(args);
  const TensorSums sums = launch_sums(queue, args);
  finish<<<1, kWarp, 0, stream_of(queue)>>>(sums, args.clip_norm, args.scaling, args.state);
  TW_CUDA_LAUNCHED("gradient_norm");
}

void run(CudaQueue& queue, const SumOfSquaresArgs& args) {
  check(args);
  const TensorSums sums = launch_sums(queue, args);
  keep_sum<<<1, kWarp, 0, stream_of(queue)>>>(sums, args.state);
  TW_CUDA_LAUNCHED("sum_of_squares");
}

void run(CudaQueue& queue, const NormOfSquaresArgs& args) {
  check(args);
  finish_with_sum<<<1, 1, 0, stream_of(queue)>>>(args.clip_norm, args.scaling, args.state);
  TW_CUDA_LAUNCHED("norm_of_squares");
}

}  // namespace tilewave
