// Layer normalisation over each row's columns (torch.nn.functional.layer_norm: biased variance, epsilon inside the root).
//   forward:  mean = sum(x) / d;  rstd = 1 / sqrt(sum((x - mean)^2) / d + epsilon);  y = (x - mean) rstd gamma + beta
//   backward: h = (x - mean) rstd;  g = dy gamma;  dx = rstd (g - sum(g) / d - h sum(g h) / d)
//             dgamma = sum over rows of dy h;  dbeta = sum over rows of dy
// Statistics and parameter gradients are f32 beside 16-bit matrices, else x's dtype. Sums over rows are taken in chunks of
// layer_norm_row_chunk(rows) rows, on a CPU also of more, and added in an order that the shape decides.
#pragma once

#include <algorithm>

#include "kernels/core/queue.h"
#include "kernels/core/view.h"
#include "kernels/gemm/cost/operation_model.h"
#include "kernels/gemm/tiling.h"

namespace tilewave {

inline constexpr double kLayerNormEpsilon = 1e-5;

// Many rows make a fixed number of chunks, which a GPU takes at once; few rows make short ones, so that there are some to share out.
inline constexpr std::int64_t kLayerNormChunks = 264;
constexpr std::int64_t layer_norm_row_chunk(std::int64_t rows) { return std::max<std::int64_t>(8, ceil_div(rows, kLayerNormChunks)); }

struct LayerNormArgs {
  static constexpr std::string_view kOperation = "layer_norm";
  static constexpr OperationTime kTime{.launches = 1, .copy_share = &OperationModel::layer_norm_share};
  ConstMatrixView x;            // [rows, d]
  ConstMatrixView gamma, beta;  // [1, d]
  MatrixView y;                 // [rows, d]
  MatrixView mean, rstd;        // [rows, 1]
  double epsilon = kLayerNormEpsilon;
};

struct LayerNormBackwardArgs {
  static constexpr std::string_view kOperation = "layer_norm_backward";
  static constexpr OperationTime kTime{.launches = 2, .copy_share = &OperationModel::layer_norm_backward_share};
  ConstMatrixView x, gamma, mean, rstd;
  ConstMatrixView dy;        // [rows, d]
  MatrixView dx;             // [rows, d]
  bool accumulate = false;   // of dx
  MatrixView dgamma, dbeta;  // [1, d]
  bool accumulate_parameters = false;
  MatrixView partial;  // workspace [layer_norm_partial_rows(rows), d], dgamma's dtype
};

constexpr std::int64_t layer_norm_partial_rows(std::int64_t rows) { return 2 * ceil_div(rows, layer_norm_row_chunk(rows)); }

inline Cost cost(const LayerNormArgs& args) {
  return {.flops = 8 * args.y.rows * args.y.cols,
          .bytes = args.x.bytes() + args.gamma.bytes() + args.beta.bytes() + args.y.bytes() + args.mean.bytes() + args.rstd.bytes()};
}
inline Cost cost(const LayerNormBackwardArgs& args) {
  return {.flops = 14 * args.dx.rows * args.dx.cols,
          .bytes = args.x.bytes() + args.gamma.bytes() + args.mean.bytes() + args.rstd.bytes() + args.dy.bytes() +
                   args.dx.bytes() * (args.accumulate ? 2 : 1) +
                   (args.dgamma.bytes() + args.dbeta.bytes()) * (args.accumulate_parameters ? 2 : 1) + 2 * args.partial.bytes()};
}
void check(const LayerNormArgs& args);
void check(const LayerNormBackwardArgs& args);
void run(CpuQueue& queue, const LayerNormArgs& args);
void run(CpuQueue& queue, const LayerNormBackwardArgs& args);
void run(CudaQueue& queue, const LayerNormArgs& args);
void run(CudaQueue& queue, const LayerNormBackwardArgs& args);

}  // namespace tilewave
