// Softmax on a CPU, a row at a time; the formulas stand in kernels/ops/softmax.h.
#include "kernels/ops/softmax.h"

#include "kernels/cpu/core/row_ranges.h"
#include "kernels/cpu/core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/ops/softmax.cpp"  // NOLINT
#include <hwy/foreach_target.h>                           // NOLINT: includes this file once a target
#include <hwy/highway.h>

#include "kernels/cpu/core/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tilewave::HWY_NAMESPACE {
namespace {

template <class T>
void softmax_rows(const SoftmaxArgs& args, std::int64_t begin, std::int64_t end) {
  const std::int64_t cols = args.x.cols;
  for (std::int64_t r = begin; r < end; ++r) {
    const T* x = args.x.row<T>(r);
    T* y = args.y.row<T>(r);
    const T max = max_of<T>(cols, [=](std::int64_t c) { return x[c]; });
    const T reciprocal = T(1) / sum_of_exp(x, cols, max, y);
    for (std::int64_t c = 0; c < cols; ++c) y[c] *= reciprocal;
  }
}

template <class T>
void softmax_rows_backward(const SoftmaxBackwardArgs& args, std::int64_t begin, std::int64_t end) {
  const std::int64_t cols = args.y.cols;
  for (std::int64_t r = begin; r < end; ++r) {
    const T* y = args.y.row<T>(r);
    const T* dy = args.dy.row<T>(r);
    T* dx = args.dx.row<T>(r);
    const T sum = sum_of<T>(cols, [=](std::int64_t c) { return dy[c] * y[c]; });
    if (args.accumulate) {
#pragma GCC ivdep
      for (std::int64_t c = 0; c < cols; ++c) dx[c] += y[c] * (dy[c] - sum);
    } else {
#pragma GCC ivdep
      for (std::int64_t c = 0; c < cols; ++c) dx[c] = y[c] * (dy[c] - sum);
    }
  }
}

void softmax(CpuQueue& queue, const SoftmaxArgs& args) {
  with_cpu_float(args.x.dtype, "softmax", [&]<class T>(T) {
    for_row_ranges(queue, args.x.rows, args.x.cols, [&](std::int64_t begin, std::int64_t end) { softmax_rows<T>(args, begin, end); });
  });
}

void softmax_backward(CpuQueue& queue, const SoftmaxBackwardArgs& args) {
  with_cpu_float(args.y.dtype, "softmax_backward", [&]<class T>(T) {
    for_row_ranges(queue, args.y.rows, args.y.cols,
                   [&](std::int64_t begin, std::int64_t end) { softmax_rows_backward<T>(args, begin, end); });
  });
}

}  // namespace
}  // namespace tilewave::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tilewave {

HWY_EXPORT(softmax);
HWY_EXPORT(softmax_backward);

void run(CpuQueue& queue, const SoftmaxArgs& args) {
  check(args);
  HWY_DYNAMIC_DISPATCH(softmax)(queue, args);
}

void run(CpuQueue& queue, const SoftmaxBackwardArgs& args) {
  check(args);
  HWY_DYNAMIC_DISPATCH(softmax_backward)(queue, args);
}

}  // namespace tilewave
#endif
