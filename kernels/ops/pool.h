// Pooling over windows of pixels, channel by channel (torch.nn.functional.max_pool2d and avg_pool2d, with ceil_mode off and dilation 1).
// Output pixel (i, j) has the window of rows i stride - padding ... + kernel, as far as they are in the image, and likewise of columns.
//   max:     y = the largest of the window, the first where several are, a NaN above all; index = its row x width + its column in the
//            image. backward: dx = sum of dy over the windows whose index it is
//   average: y = sum / n, n = kernel height x kernel width, or the window's pixels in the image without count_include_pad
//            backward: dx = sum of dy / n over the windows that it is in
// Gradients are sums in the order of the windows: no atomics.
#pragma once

#include "kernels/core/images.h"
#include "kernels/core/queue.h"
#include "kernels/core/view.h"
#include "kernels/gemm/cost/operation_model.h"

namespace tilewave {

struct PoolWindow {
  std::int64_t height = 2, width = 2;
  std::int64_t stride_down = 2, stride_across = 2;
  std::int64_t padding_down = 0, padding_across = 0;  // of lowest numbers, or of zeros; at most half the window

  friend bool operator==(const PoolWindow&, const PoolWindow&) = default;
};

// The images that pooling makes of these; empty ones where a window is larger than a padded image.
constexpr Images pooled(const Images& images, const PoolWindow& window) {
  const auto places = [](std::int64_t size, std::int64_t kernel, std::int64_t stride, std::int64_t padding) {
    return size + 2 * padding < kernel ? 0 : (size + 2 * padding - kernel) / stride + 1;
  };
  Images result = images;
  result.height = places(images.height, window.height, window.stride_down, window.padding_down);
  result.width = places(images.width, window.width, window.stride_across, window.padding_across);
  return result;
}

enum class PadCount : std::uint8_t { included, excluded };  // of an average's pixels

struct MaxPoolArgs {
  static constexpr std::string_view kOperation = "max_pool";
  static constexpr OperationTime kTime{.launches = 1, .copy_share = &OperationModel::pool_share};
  ConstMatrixView x;
  MatrixView y;
  MatrixView indices;  // like y, i32; absent where no gradient is asked for
  Images images;       // x's
  PoolWindow window;
};

struct MaxPoolBackwardArgs {
  static constexpr std::string_view kOperation = "max_pool_backward";
  static constexpr OperationTime kTime{.launches = 1, .copy_share = &OperationModel::pool_backward_share};
  ConstMatrixView dy;
  ConstMatrixView indices;
  MatrixView dx;
  bool accumulate = false;
  Images images;  // dx's
  PoolWindow window;
};

struct AveragePoolArgs {
  static constexpr std::string_view kOperation = "average_pool";
  static constexpr OperationTime kTime{.launches = 1, .copy_share = &OperationModel::pool_share};
  ConstMatrixView x;
  MatrixView y;
  Images images;  // x's
  PoolWindow window;
  PadCount count_pad = PadCount::included;
};

struct AveragePoolBackwardArgs {
  static constexpr std::string_view kOperation = "average_pool_backward";
  static constexpr OperationTime kTime{.launches = 1, .copy_share = &OperationModel::pool_backward_share};
  ConstMatrixView dy;
  MatrixView dx;
  bool accumulate = false;
  Images images;  // dx's
  PoolWindow window;
  PadCount count_pad = PadCount::included;
};

inline Cost cost(const MaxPoolArgs& args) {
  return {.flops = args.window.height * args.window.width * args.y.rows * args.y.cols,
          .bytes = args.x.bytes() + args.y.bytes() + args.indices.bytes()};
}
inline Cost cost(const MaxPoolBackwardArgs& args) {
  return {.flops = args.dy.rows * args.dy.cols,
          .bytes = args.dy.bytes() + args.indices.bytes() + args.dx.bytes() * (args.accumulate ? 2 : 1)};
}
inline Cost cost(const AveragePoolArgs& args) {
  return {.flops = args.window.height * args.window.width * args.y.rows * args.y.cols, .bytes = args.x.bytes() + args.y.bytes()};
}
inline Cost cost(const AveragePoolBackwardArgs& args) {
  return {.flops = args.window.height * args.window.width * args.dy.rows * args.dy.cols,
          .bytes = args.dy.bytes() + args.dx.bytes() * (args.accumulate ? 2 : 1)};
}
void check(const MaxPoolArgs& args);
void check(const MaxPoolBackwardArgs& args);
void check(const AveragePoolArgs& args);
void check(const AveragePoolBackwardArgs& args);
void run(CpuQueue& queue, const MaxPoolArgs& args);
void run(CpuQueue& queue, const MaxPoolBackwardArgs& args);
void run(CpuQueue& queue, const AveragePoolArgs& args);
void run(CpuQueue& queue, const AveragePoolBackwardArgs& args);
void run(CudaQueue& queue, const MaxPoolArgs& args);
void run(CudaQueue& queue, const MaxPoolBackwardArgs& args);
void run(CudaQueue& queue, const AveragePoolArgs& args);
void run(CudaQueue& queue, const AveragePoolBackwardArgs& args);

}  // namespace tilewave
