// What the CUDA-core rows are told, for D as it lies in memory: D[rows, cols] = sum over depth of left[row, depth] right[depth, col].
#pragma once

#include "kernels/cuda/gemm/epilogue.h"

namespace tilewave {

struct CoreOperand {
  const void* data = nullptr;
  std::int64_t across = 0, along = 0;  // elements from one row (left) or column (right) to the next, and from one depth to the next
};

template <class T>
struct CoreProblem {
  CoreOperand left, right;
  std::int64_t depth = 0;
  std::int64_t depth_of_part = 0;
  std::int64_t split = 1;
  bool sum_left = false, sum_right = false;  // the bias gradient's sums over depth
  GemmEpilogue epilogue;
  SplitSums<Arithmetic<T>> parts;
};

template <class T>
CoreProblem<T> core_problem_of(const GemmArgs& args, const GemmPlan& plan, std::int64_t block_depth) {
  const bool along_m = args.d_major == Major::m;
  const auto operand = [](const ConstMatrixView& view, bool along_depth) {
    return CoreOperand{.data = view.data, .across = along_depth ? view.ld : 1, .along = along_depth ? 1 : view.ld};
  };
  const CoreOperand a = operand(args.a, args.a_major == Major::k), b = operand(args.b, args.b_major == Major::k);
  const std::int64_t k = args.a_major == Major::k ? args.a.cols : args.a.rows;
  const bool sums = static_cast<bool>(args.bias_gradient);
  const GemmEpilogue epilogue = epilogue_of(args);
  return {.left = along_m ? b : a,
          .right = along_m ? a : b,
          .depth = k,
          .depth_of_part = round_up(ceil_div(k, plan.split), block_depth),
          .split = plan.split,
          .sum_left = sums && along_m,
          .sum_right = sums && !along_m,
          .epilogue = epilogue,
          .parts = SplitSums<Arithmetic<T>>(args.workspace, epilogue, plan.split, args.bias_gradient.cols)};
}

}  // namespace tilewave
