// Grouped queries (Ainslie et al., "GQA", 2023): `times` heads of queries share a head of keys and values, which stands before attention
// that many times, one after another.
//   forward:  y's head h = x's head h / times
//   backward: dx's head g = sum over its times heads of dy, in their order
#pragma once

#include "kernels/core/queue.h"
#include "kernels/core/view.h"
#include "kernels/gemm/cost/operation_model.h"

namespace tilewave {

struct RepeatHeadsArgs {
  static constexpr std::string_view kOperation = "repeat_heads";
  static constexpr OperationTime kTime{.launches = 1, .copy_share = &OperationModel::repeat_heads_share};
  ConstMatrixView x;  // [rows, heads D]
  MatrixView y;       // [rows, heads times D]
  std::int64_t head_size = 0, times = 1;
};

struct RepeatHeadsBackwardArgs {
  static constexpr std::string_view kOperation = "repeat_heads_backward";
  static constexpr OperationTime kTime{.launches = 1, .copy_share = &OperationModel::repeat_heads_share};
  ConstMatrixView dy;  // [rows, heads times D]
  MatrixView dx;       // [rows, heads D]; written
  std::int64_t head_size = 0, times = 1;
};

inline Cost cost(const RepeatHeadsArgs& args) { return {.flops = 0, .bytes = args.x.bytes() + args.y.bytes()}; }
inline Cost cost(const RepeatHeadsBackwardArgs& args) {
  return {.flops = args.dy.rows * args.dy.cols, .bytes = args.dy.bytes() + args.dx.bytes()};
}
void check(const RepeatHeadsArgs& args);
void check(const RepeatHeadsBackwardArgs& args);
void run(CpuQueue& queue, const RepeatHeadsArgs& args);
void run(CpuQueue& queue, const RepeatHeadsBackwardArgs& args);
void run(CudaQueue& queue, const RepeatHeadsArgs& args);
void run(CudaQueue& queue, const RepeatHeadsBackwardArgs& args);

}  // namespace tilewave
