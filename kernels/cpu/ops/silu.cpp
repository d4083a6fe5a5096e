// SiLU and SwiGLU's product on a CPU; the formulas stand in kernels/ops/silu.h and kernels/math/silu.h.
#include "kernels/ops/silu.h"

#include "kernels/cpu/core/row_ranges.h"
#include "kernels/math/silu.h"

namespace tilewave {
namespace {

template <class T>
void silu_row(const SiluArgs& args, std::int64_t r) {
  const T* x = args.x.row<T>(r);
  T* y = args.y.row<T>(r);
  if (args.up) {
    const T* up = args.up.row<T>(r);
#pragma GCC ivdep
    for (std::int64_t c = 0; c < args.y.cols; ++c) y[c] = silu(x[c]) * up[c];
  } else {
#pragma GCC ivdep
    for (std::int64_t c = 0; c < args.y.cols; ++c) y[c] = silu(x[c]);
  }
}

template <class T>
void silu_row_backward(const SiluBackwardArgs& args, std::int64_t r) {
  const T* x = args.x.row<T>(r);
  const T* dy = args.dy.row<T>(r);
  T* dx = args.dx.row<T>(r);
  if (args.up) {
    const T* up = args.up.row<T>(r);
    T* dup = args.dup.row<T>(r);
#pragma GCC ivdep
    for (std::int64_t c = 0; c < args.dx.cols; ++c) {
      const T gradient = dy[c];
      dup[c] = gradient * silu(x[c]);
      dx[c] = gradient * up[c] * silu_derivative(x[c]);
    }
  } else {
#pragma GCC ivdep
    for (std::int64_t c = 0; c < args.dx.cols; ++c) dx[c] = dy[c] * silu_derivative(x[c]);
  }
}

}  // namespace

void run(CpuQueue& queue, const SiluArgs& args) {
  check(args);
  with_cpu_float(args.x.dtype, "silu", [&]<class T>(T) {
    for_row_ranges(queue, args.y.rows, args.y.cols, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) silu_row<T>(args, r);
    });
  });
}

void run(CpuQueue& queue, const SiluBackwardArgs& args) {
  check(args);
  with_cpu_float(args.x.dtype, "silu_backward", [&]<class T>(T) {
    for_row_ranges(queue, args.dx.rows, args.dx.cols, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) silu_row_backward<T>(args, r);
    });
  });
}

}  // namespace tilewave
