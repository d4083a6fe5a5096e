// Sigmoid and tanh on a CPU, element by element; the functions stand in kernels/math/squash.h.
#include "kernels/ops/squash.h"

#include "kernels/cpu/core/row_ranges.h"
#include "kernels/math/squash.h"

namespace tilewave {
namespace {

// Calls fn with the function as a constant, so that the loops inside have no branch.
template <class Fn>
void with_squash(Squash kind, const Fn& fn) {
  if (kind == Squash::sigmoid) return fn(std::integral_constant<Squash, Squash::sigmoid>{});
  fn(std::integral_constant<Squash, Squash::tanh>{});
}

template <class T, Squash kKind>
void squash_row(const SquashArgs& args, std::int64_t r) {
  const T* x = args.x.row<T>(r);
  T* y = args.y.row<T>(r);
#pragma GCC ivdep
  for (std::int64_t c = 0; c < args.y.cols; ++c) y[c] = squash(kKind, x[c]);
}

template <class T, Squash kKind>
void squash_row_backward(const SquashBackwardArgs& args, std::int64_t r) {
  const T* y = args.y.row<T>(r);
  const T* dy = args.dy.row<T>(r);
  T* dx = args.dx.row<T>(r);
  if (args.accumulate) {
#pragma GCC ivdep
    for (std::int64_t c = 0; c < args.dx.cols; ++c) dx[c] += dy[c] * squash_derivative(kKind, y[c]);
  } else {
#pragma GCC ivdep
    for (std::int64_t c = 0; c < args.dx.cols; ++c) dx[c] = dy[c] * squash_derivative(kKind, y[c]);
  }
}

}  // namespace

void run(CpuQueue& queue, const SquashArgs& args) {
  check(args);
  with_cpu_float(args.x.dtype, "squash", [&]<class T>(T) {
    with_squash(args.kind, [&](auto kind) {
      for_row_ranges(queue, args.y.rows, args.y.cols, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r) squash_row<T, kind()>(args, r);
      });
    });
  });
}

void run(CpuQueue& queue, const SquashBackwardArgs& args) {
  check(args);
  with_cpu_float(args.y.dtype, "squash_backward", [&]<class T>(T) {
    with_squash(args.kind, [&](auto kind) {
      for_row_ranges(queue, args.dx.rows, args.dx.cols, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r) squash_row_backward<T, kind()>(args, r);
      });
    });
  });
}

}  // namespace tilewave
