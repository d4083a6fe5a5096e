// Root-mean-square normalisation (Zhang and Sennrich, "Root mean square layer normalization", 2019; torch.nn.functional.rms_norm) of a
// row's groups, each d columns wide and normalised by itself: one group is the whole row, several are the heads of queries or keys.
//   forward:  rstd = 1 / sqrt(sum(x^2) / d + epsilon);  y = x rstd gamma
//   backward: h = x rstd;  g = dy gamma;  dx = rstd (g - h sum(g h) / d);  dgamma = sum over rows and groups of dy h
// rstd and dgamma are f32 beside 16-bit matrices, else x's dtype. Sums over groups are taken in chunks of rms_norm_chunk(rows x groups), on
// a CPU also of more, and added in an order that the shape decides.
#pragma once

#include <algorithm>

#include "kernels/core/queue.h"
#include "kernels/core/view.h"
#include "kernels/gemm/cost/operation_model.h"
#include "kernels/gemm/tiling.h"

namespace tilewave {

inline constexpr std::int64_t kRmsNormChunks = 264;  // at most
constexpr std::int64_t rms_norm_chunk(std::int64_t groups) { return std::max<std::int64_t>(8, ceil_div(groups, kRmsNormChunks)); }
constexpr std::int64_t rms_norm_partial_rows(std::int64_t groups) { return ceil_div(groups, rms_norm_chunk(groups)); }

struct RmsNormArgs {
  static constexpr std::string_view kOperation = "rms_norm";
  static constexpr OperationTime kTime{.launches = 1, .copy_share = &OperationModel::rms_norm_share};
  ConstMatrixView x;      // [rows, groups d]
  ConstMatrixView gamma;  // [1, d]
  MatrixView y;           // [rows, groups d]
  MatrixView rstd;        // [rows, groups]
  double epsilon = 1e-5;
};

struct RmsNormBackwardArgs {
  static constexpr std::string_view kOperation = "rms_norm_backward";
  static constexpr OperationTime kTime{.launches = 3, .copy_share = &OperationModel::rms_norm_backward_share};
  ConstMatrixView x, gamma, rstd;
  ConstMatrixView dy;       // [rows, groups d]
  MatrixView dx;            // [rows, groups d]
  bool accumulate = false;  // of dx
  MatrixView dgamma;        // [1, d]
  bool accumulate_gamma = false;
  MatrixView partial;  // workspace [rms_norm_partial_rows(rows x groups), d], dgamma's dtype
};

inline Cost cost(const RmsNormArgs& args) {
  return {.flops = 4 * args.y.rows * args.y.cols, .bytes = args.x.bytes() + args.gamma.bytes() + args.y.bytes() + args.rstd.bytes()};
}
inline Cost cost(const RmsNormBackwardArgs& args) {
  return {.flops = 10 * args.dx.rows * args.dx.cols,
          .bytes = 2 * (args.x.bytes() + args.dy.bytes() + args.rstd.bytes()) + args.gamma.bytes() +
                   args.dx.bytes() * (args.accumulate ? 2 : 1) + args.dgamma.bytes() * (args.accumulate_gamma ? 2 : 1) +
                   2 * args.partial.bytes()};
}
void check(const RmsNormArgs& args);
void check(const RmsNormBackwardArgs& args);
void run(CpuQueue& queue, const RmsNormArgs& args);
void run(CpuQueue& queue, const RmsNormBackwardArgs& args);
void run(CudaQueue& queue, const RmsNormArgs& args);
void run(CudaQueue& queue, const RmsNormBackwardArgs& args);

}  // namespace tilewave
