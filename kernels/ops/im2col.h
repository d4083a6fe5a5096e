// The matrix of all that a convolution's outputs are products of, and its transpose; kernels/core/convolution.h has filter and formula.
//   im2col   columns[n p q, r s c] = x[n h w, c], and zero where h or w lies outside of the image
//   col2im   dx[n h w, c] = sum of dcolumns[n p q, r s c] over the filter's elements r, s, in that order, and the one p q of each
//            that has h w there
// A pixel of dx gathers what it gets, in one order: no atomics. Where columns_in_place() has the matrix, neither is needed.
#pragma once

#include "kernels/core/convolution.h"
#include "kernels/core/queue.h"
#include "kernels/core/view.h"
#include "kernels/gemm/cost/operation_model.h"

namespace tilewave {

struct Im2colArgs {
  static constexpr std::string_view kOperation = "im2col";
  static constexpr OperationTime kTime{.launches = 1, .copy_share = &OperationModel::other_share};
  ConstMatrixView x;   // [N H W, C]
  MatrixView columns;  // [N P Q, R S C]
  Images images;       // x's
  ConvolutionFilter filter;
};

struct Col2imArgs {
  static constexpr std::string_view kOperation = "col2im";
  static constexpr OperationTime kTime{.launches = 1, .copy_share = &OperationModel::other_share};
  ConstMatrixView dcolumns;  // [N P Q, R S C]
  MatrixView dx;             // [N H W, C]
  bool accumulate = false;
  Images images;  // dx's
  ConvolutionFilter filter;
};

inline Cost cost(const Im2colArgs& args) { return {.flops = 0, .bytes = args.x.bytes() + args.columns.bytes()}; }
inline Cost cost(const Col2imArgs& args) {
  return {.flops = args.dcolumns.rows * args.dcolumns.cols, .bytes = args.dcolumns.bytes() + args.dx.bytes() * (args.accumulate ? 2 : 1)};
}
void check(const Im2colArgs& args);
void check(const Col2imArgs& args);
void run(CpuQueue& queue, const Im2colArgs& args);
void run(CpuQueue& queue, const Col2imArgs& args);
void run(CudaQueue& queue, const Im2colArgs& args);
void run(CudaQueue& queue, const Col2imArgs& args);

}  // namespace tilewave
