// Softmax: a row is one warp's or one block's, and stays in registers between its passes unless it is very wide.
#include <limits>

#include "kernels/cuda/core/rows.h"
#include "kernels/ops/softmax.h"

namespace tilewave {
namespace {

template <class T, int kThreads, int kPacks, PackAccess kAccess>
__global__ void __launch_bounds__(RowShape<kThreads, kPacks>::rows* kThreads) softmax(const SoftmaxArgs args) {
  using A = Arithmetic<T>;
  __shared__ A scratch[kThreads / kWarp];
  const std::int64_t cols = args.x.cols, r = blockIdx.x * static_cast<std::int64_t>(RowShape<kThreads, kPacks>::rows) + threadIdx.y;
  if (r >= args.x.rows) return;
  const RowPacks<T, kThreads, kPacks, kAccess> x(args.x.row<T>(r), cols);
  A max = -std::numeric_limits<A>::infinity(), sum = 0;
  x.each_element([&](A value) { max = Max()(max, value); });
  max = fold_group<kThreads>(max, scratch, Max());
  x.each_element([&](A value) { sum += exponential_of_distance(value - max); });
  const A reciprocal = A(1) / fold_group<kThreads>(sum, scratch, Sum());
  x.each([&](std::int64_t column, const Pack<T>& pack) {
    A y[kPackWidth<T>];
#pragma unroll
    for (int i = 0; i < kPackWidth<T>; ++i) y[i] = exponential_of_distance(load(pack.get(i)) - max) * reciprocal;
    store_pack<kAccess>(args.y.row<T>(r), column, cols, pack_of<T>(y));
  });
}

template <class T, int kThreads, int kPacks, PackAccess kAccess>
__global__ void __launch_bounds__(RowShape<kThreads, kPacks>::rows* kThreads) softmax_backward(const SoftmaxBackwardArgs args) {
  using A = Arithmetic<T>;
  constexpr int kWidth = kPackWidth<T>;
  __shared__ A scratch[kThreads / kWarp];
  const std::int64_t cols = args.y.cols, r = blockIdx.x * static_cast<std::int64_t>(RowShape<kThreads, kPacks>::rows) + threadIdx.y;
  if (r >= args.y.rows) return;
  const RowPacks<T, kThreads, kPacks, kAccess> y(args.y.row<T>(r), cols), dy(args.dy.row<T>(r), cols);
  A partial = 0;
  RowPacks<T, kThreads, kPacks, kAccess>::each_pair(y, dy, [&](std::int64_t, const Pack<T>& ys, const Pack<T>& dys) {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) partial = fma(load(dys.get(i)), load(ys.get(i)), partial);  // 0 past the row
  });
  const A sum = fold_group<kThreads>(partial, scratch, Sum());
  RowPacks<T, kThreads, kPacks, kAccess>::each_pair(y, dy, [&](std::int64_t column, const Pack<T>& ys, const Pack<T>& dys) {
    Pack<T> earlier{};
    if (args.accumulate) earlier = load_pack<kAccess, kWidth>(args.dx.row<const T>(r), column, cols);
    A dx[kWidth];
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      const A kept = args.accumulate ? load(earlier.get(i)) : A(0);
      dx[i] = fma(load(ys.get(i)), load(dys.get(i)) - sum, kept);
    }
    store_pack<kAccess>(args.dx.row<T>(r), column, cols, pack_of<T>(dx));
  });
}

}  // namespace

void run(CudaQueue& queue, const SoftmaxArgs& args) {
  check(args);
  const auto& x = args.x;
  if (x.rows == 0 || x.cols == 0) return;
  with_float(x.dtype, "softmax", [&]<class T>(T) {
    with_row_shape(ceil_div(x.cols, kPackWidth<T>), [&](auto shape) {
      with_whole_access(access_of(kPackWidth<T>, {x, args.y}), x.cols, kPackWidth<T>, [&](auto access) {
        softmax<T, shape.threads, shape.packs, access()>
            <<<static_cast<unsigned>(ceil_div(x.rows, shape.rows)), dim3(shape.threads, shape.rows), 0, stream_of(queue)>>>(args);
      });
    });
    TW_CUDA_LAUNCHED("softmax");
  });
}

void run(CudaQueue& queue, const SoftmaxBackwardArgs& args) {
  check(args);
  const auto& y = args.y;
  if (y.rows == 0 || y.cols == 0) return;
  with_float(y.dtype, "softmax_backward", [&]<class T>(T) {
    with_row_shape(ceil_div(y.cols, kPackWidth<T>), [&](auto shape) {
      with_whole_access(access_of(kPackWidth<T>, {y, args.dy, args.dx}), y.cols, kPackWidth<T>, [&](auto access) {
        softmax_backward<T, shape.threads, shape.packs, access()>
            <<<static_cast<unsigned>(ceil_div(y.rows, shape.rows)), dim3(shape.threads, shape.rows), 0, stream_of(queue)>>>(args);
      });
    });
    TW_CUDA_LAUNCHED("softmax_backward");
  });
}

}  // namespace tilewave
