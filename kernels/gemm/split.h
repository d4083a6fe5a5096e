// Sums split along K: the workspace that the parts lie in until one pass adds them in order.
#pragma once

#include "kernels/gemm/problem.h"
#include "kernels/gemm/tiling.h"

namespace tilewave {

inline constexpr std::int64_t kSplitPitch = 8;  // a part's rows are this many elements' multiple

// Bytes of `split` parts of the sums, the bias gradient's included; none where nothing is split.
constexpr std::int64_t split_bytes(const GemmProblem& problem, std::int64_t split) {
  if (split == 1) return 0;
  const std::int64_t rows = problem.d_major == Major::m ? problem.n : problem.m, cols = problem.d_major == Major::m ? problem.m : problem.n;
  const std::int64_t part = rows * round_up(cols, kSplitPitch) + (problem.epilogue.bias_gradient ? problem.n : 0);
  return split * part * (problem.operand_dtype == DType::f64 ? 8 : 4);
}

}  // namespace tilewave
