// Batch normalization (Ioffe and Szegedy, 2015; torch.nn.functional.batch_norm) of each channel over images and pixels, n values in all.
//   forward:  mean = sum(x) / n;  variance = sum((x - mean)^2) / n;  rstd = 1 / sqrt(variance + epsilon);  y = (x - mean) rstd gamma + beta
//             running_mean = (1 - momentum) running_mean + momentum mean;  running_variance likewise, with variance n / (n - 1)
//   evaluation: mean and variance are the running ones, which stay as they are
//   backward: h = (x - mean) rstd;  dgamma = sum(dy h);  dbeta = sum(dy);  dx = gamma rstd (dy - dbeta / n - h dgamma / n)
//             of an evaluation: dx = gamma rstd dy
// In one pass a value stays on the chip between its statistics and its result, as far as there is room; in several it is read for each.
// Both give the same bits. Statistics, running ones and parameter gradients are f32 beside 16-bit matrices, else x's dtype. On a GPU sums
// are taken in chunks (batch_norm_chunks) and added in an order that the shape decides.
#pragma once

#include <algorithm>

#include "kernels/core/images.h"
#include "kernels/core/queue.h"
#include "kernels/core/view.h"
#include "kernels/gemm/cost/operation_model.h"
#include "kernels/gemm/tiling.h"

namespace tilewave {

enum class BatchNormMode : std::uint8_t { training, evaluation };
enum class BatchNormPasses : std::uint8_t { one, several };

// Chunks: of rows where a row is a pixel, else of a row's columns.
inline constexpr std::int64_t kBatchNormChunks = 264;    // of rows, at most
inline constexpr std::int64_t kBatchNormSegment = 4096;  // columns
constexpr std::int64_t batch_norm_chunk_rows(std::int64_t rows) { return std::max<std::int64_t>(8, ceil_div(rows, kBatchNormChunks)); }
constexpr std::int64_t batch_norm_chunks(std::int64_t rows, std::int64_t cols, std::int64_t channels, ImageLayout layout) {
  return layout == ImageLayout::nhwc ? ceil_div(rows, batch_norm_chunk_rows(rows)) : rows / channels * ceil_div(cols, kBatchNormSegment);
}
// Two sums a chunk and channel, and of all chunks.
constexpr std::int64_t batch_norm_partial_rows(std::int64_t rows, std::int64_t cols, std::int64_t channels, ImageLayout layout) {
  return 2 * batch_norm_chunks(rows, cols, channels, layout) + 2;
}

struct BatchNormArgs {
  static constexpr std::string_view kOperation = "batch_norm";
  ConstMatrixView x;                          // [N H W, C] or [N C, H W]
  ConstMatrixView gamma, beta;                // [1, C]
  MatrixView y;                               // like x
  MatrixView mean, rstd;                      // [1, C], what y was made with
  MatrixView running_mean, running_variance;  // [1, C]; in training both may be absent
  double momentum = 0.1;
  double epsilon = 1e-5;
  ImageLayout layout = ImageLayout::nhwc;
  BatchNormMode mode = BatchNormMode::training;
  BatchNormPasses passes = BatchNormPasses::one;
  MatrixView partial;  // workspace [batch_norm_partial_rows, C], mean's dtype; absent in an evaluation
};

struct BatchNormBackwardArgs {
  static constexpr std::string_view kOperation = "batch_norm_backward";
  ConstMatrixView x, gamma, mean, rstd;
  ConstMatrixView dy;        // like x
  MatrixView dx;             // like x; may be dy
  bool accumulate = false;   // of dx
  MatrixView dgamma, dbeta;  // [1, C]
  bool accumulate_gamma = false, accumulate_beta = false;
  ImageLayout layout = ImageLayout::nhwc;
  BatchNormMode mode = BatchNormMode::training;
  BatchNormPasses passes = BatchNormPasses::one;
  MatrixView partial;  // workspace [batch_norm_partial_rows, C], mean's dtype
};

// x is counted once where a pass has it all, and else for its statistics and for its result.
inline Cost cost(const BatchNormArgs& args) {
  const std::int64_t reads = args.mode == BatchNormMode::training && args.passes == BatchNormPasses::several ? 2 : 1;
  return {.flops = 8 * args.y.rows * args.y.cols,
          .bytes = reads * args.x.bytes() + args.gamma.bytes() + args.beta.bytes() + args.y.bytes() + args.mean.bytes() +
                   args.rstd.bytes() + 2 * (args.running_mean.bytes() + args.running_variance.bytes() + args.partial.bytes())};
}
inline Cost cost(const BatchNormBackwardArgs& args) {
  const std::int64_t reads = args.passes == BatchNormPasses::several ? 2 : 1;
  return {.flops = 14 * args.dx.rows * args.dx.cols,
          .bytes = reads * (args.x.bytes() + args.dy.bytes()) + args.gamma.bytes() + args.mean.bytes() + args.rstd.bytes() +
                   args.dx.bytes() * (args.accumulate ? 2 : 1) + args.dgamma.bytes() * (args.accumulate_gamma ? 2 : 1) +
                   args.dbeta.bytes() * (args.accumulate_beta ? 2 : 1) + 2 * args.partial.bytes()};
}

// The number of launches is that of the passes.
template <class Args>
TraceEntry batch_norm_entry(const Args& args, OperationNumber share) {
  const bool three = args.passes == BatchNormPasses::several;
  return {.operation = Args::kOperation,
          .layer = {},
          .cost = cost(args),
          .time = {.launches = three ? 3 : 1, .copy_share = share},
          .gemm = {},
          .plan = {},
          .attention = {},
          .collective = {}};
}
inline TraceEntry trace_entry(const BatchNormArgs& args) {
  TraceEntry entry = batch_norm_entry(args, &OperationModel::batch_norm_share);
  if (args.mode == BatchNormMode::evaluation) entry.time.launches = 2;
  return entry;
}
inline TraceEntry trace_entry(const BatchNormBackwardArgs& args) {
  return batch_norm_entry(args, &OperationModel::batch_norm_backward_share);
}

void check(const BatchNormArgs& args);
void check(const BatchNormBackwardArgs& args);
void run(CpuQueue& queue, const BatchNormArgs& args);
void run(CpuQueue& queue, const BatchNormBackwardArgs& args);
void run(CudaQueue& queue, const BatchNormArgs& args);
void run(CudaQueue& queue, const BatchNormBackwardArgs& args);

}  // namespace tilewave
