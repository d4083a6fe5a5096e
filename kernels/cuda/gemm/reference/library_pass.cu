// The passes that follow a library's product: sums of B over K, and the epilogue of split.cu on one part.
#include "kernels/cuda/gemm/epilogue.h"
#include "kernels/cuda/gemm/reference/library_pass.h"
#include "kernels/gemm/reference/libraries.h"

namespace tilewave {
namespace {

constexpr int kSumThreads = 256, kSumColumns = 32;

// sums[n] = sum over k of B[k, n], in an order that the sizes alone decide.
template <class T>
__global__ void sum_over_k(const T* b, std::int64_t along_n, std::int64_t along_k, std::int64_t n, std::int64_t k, Arithmetic<T>* sums) {
  constexpr int kLines = kSumThreads / kSumColumns;
  __shared__ Arithmetic<T> parts[kLines][kSumColumns];
  const int line = static_cast<int>(threadIdx.x) / kSumColumns, column = static_cast<int>(threadIdx.x) % kSumColumns;
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * kSumColumns + column;
  Arithmetic<T> sum = 0;
  if (at < n) {
    for (std::int64_t i = line; i < k; i += kLines) sum += load(b[at * along_n + i * along_k]);
  }
  parts[line][column] = sum;
  __syncthreads();
  if (line != 0 || at >= n) return;
  for (int other = 1; other < kLines; ++other) sum += parts[other][column];
  sums[at] = sum;
}

template <class T>
SplitKPartials<Arithmetic<T>> sums_of(const GemmArgs& args, const GemmEpilogue& epilogue) {
  return {static_cast<std::byte*>(args.workspace) + kLibraryWorkspace, epilogue, 1, args.bias_gradient.cols};
}

}  // namespace

LibraryTarget library_target(const GemmArgs& args, bool straight) {
  const GemmEpilogue epilogue = epilogue_of(args);
  Plane plane = epilogue.d;
  if (!straight) {
    plane = args.a.dtype == DType::f64 ? sums_of<double>(args, epilogue).of_part(epilogue, 0).d
                                       : sums_of<float>(args, epilogue).of_part(epilogue, 0).d;
  }
  return {.data = plane.data, .ld = plane.ld, .dtype = plane.dtype, .accumulate = straight && args.accumulate};
}

void finish_library(CudaQueue& queue, const GemmArgs& args, bool straight) {
  if (straight && !args.bias_gradient) return;
  const GemmProblem problem = problem_of(args);
  GemmEpilogue epilogue = epilogue_of(args);
  with_float(problem.operand_dtype, "gemm", [&]<class T>(T) {
    const SplitKPartials<Arithmetic<T>> sums = sums_of<T>(args, epilogue);
    if (args.bias_gradient) {
      const bool along_k = args.b_major == Major::k;
      sum_over_k<T><<<static_cast<unsigned>(ceil_div(problem.n, kSumColumns)), kSumThreads, 0, stream_of(queue)>>>(
          static_cast<const T*>(args.b.data), along_k ? args.b.ld : 1, along_k ? 1 : args.b.ld, problem.n, problem.k, sums.bias_gradients);
      TW_CUDA_LAUNCHED("gemm, a library's bias gradient");
    }
    if (straight) epilogue.rows = 0;  // the bias gradient alone is left
    reduce_split_k(queue, epilogue, sums, 1);
  });
}

}  // namespace tilewave
