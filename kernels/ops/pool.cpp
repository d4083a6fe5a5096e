// What pooling asks of its arguments.
#include "kernels/ops/pool.h"

#include <limits>

#include "kernels/core/contract.h"

namespace tilewave {
namespace {

// The images that the window makes.
template <class Args>
Images check_window(const Args& args) {
  const PoolWindow& w = args.window;
  const Images& images = args.images;
  TW_CHECK(images.count > 0 && images.channels > 0 && images.height > 0 && images.width > 0, Args::kOperation, ": images are ",
           images.count, " of ", images.channels, " channels, ", images.height, " x ", images.width, "; each must be at least 1.");
  TW_CHECK(images.pixels() <= std::numeric_limits<std::int32_t>::max(), Args::kOperation, ": an image has ", images.pixels(),
           " pixels; an index of 32 bits tells ", std::numeric_limits<std::int32_t>::max(), " apart.");
  TW_CHECK(w.height > 0 && w.width > 0 && w.stride_down > 0 && w.stride_across > 0, Args::kOperation, ": the window is ", w.height, " x ",
           w.width, " with strides ", w.stride_down, " and ", w.stride_across, "; each must be at least 1.");
  TW_CHECK(w.padding_down >= 0 && w.padding_across >= 0 && 2 * w.padding_down <= w.height && 2 * w.padding_across <= w.width,
           Args::kOperation, ": the padding is ", w.padding_down, " and ", w.padding_across, ", the window ", w.height, " x ", w.width,
           "; padding is from 0 to half the window.");
  const Images result = pooled(images, w);
  TW_CHECK(result.pixels() > 0, Args::kOperation, ": a window of ", w.height, " x ", w.width, " does not fit in an image of ",
           images.height, " x ", images.width, " with padding ", w.padding_down, " and ", w.padding_across, ".");
  return result;
}

ViewShape shape_of(const Images& images, DType dtype) { return {.rows = images.rows(), .cols = images.cols(), .dtype = dtype}; }

template <class Args>
void check_forward(const Args& args) {
  const Contract contract(Args::kOperation);
  const Images result = check_window(args);
  contract.expect("x", args.x, shape_of(args.images, args.x.dtype));
  contract.expect("y", args.y, shape_of(result, args.x.dtype));
}

template <class Args>
void check_backward(const Args& args) {
  const Contract contract(Args::kOperation);
  const Images result = check_window(args);
  contract.expect("dy", args.dy, shape_of(result, args.dy.dtype));
  contract.expect("dx", args.dx, shape_of(args.images, args.dy.dtype));
}

}  // namespace

void check(const MaxPoolArgs& args) {
  check_forward(args);
  Contract(MaxPoolArgs::kOperation).expect_if_present("indices", args.indices, shape_of(pooled(args.images, args.window), DType::i32));
}
void check(const MaxPoolBackwardArgs& args) {
  check_backward(args);
  Contract(MaxPoolBackwardArgs::kOperation).expect("indices", args.indices, shape_of(pooled(args.images, args.window), DType::i32));
}
void check(const AveragePoolArgs& args) { check_forward(args); }
void check(const AveragePoolBackwardArgs& args) { check_backward(args); }

}  // namespace tilewave
