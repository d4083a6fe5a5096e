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
  std::int64_t depth_of_slice = 0;
  std::int64_t split = 1;
  bool sum_left = false, sum_right = false;  // the bias gradient's sums over depth
  GemmEpilogue epilogue;
  SplitKPartials<Arithmetic<T>> parts;
};

template <class T>
CoreProblem<T> core_problem_of(const GemmCall& call, std::int64_t block_depth) {
  const bool along_m = call.args.d_major == Major::m;
  const auto operand = [](const ConstMatrixView& view, bool along_depth) {
    return CoreOperand{.data = view.data, .across = along_depth ? view.ld : 1, .along = along_depth ? 1 : view.ld};
  };
  const CoreOperand a = operand(call.args.a, call.args.a_major == Major::k), b = operand(call.args.b, call.args.b_major == Major::k);
  const std::int64_t k = call.args.a_major == Major::k ? call.args.a.cols : call.args.a.rows;
  const bool sums = static_cast<bool>(call.args.bias_gradient);
  const GemmEpilogue epilogue = epilogue_of(call.args);
  return {.left = along_m ? b : a,
          .right = along_m ? a : b,
          .depth = k,
          .depth_of_slice = round_up(ceil_div(k, call.plan.split), block_depth),
          .split = call.plan.split,
          .sum_left = sums && along_m,
          .sum_right = sums && !along_m,
          .epilogue = epilogue,
          .parts = SplitKPartials<Arithmetic<T>>(call.args.workspace, epilogue, call.plan.split, call.args.bias_gradient.cols)};
}

}  // namespace tilewave
