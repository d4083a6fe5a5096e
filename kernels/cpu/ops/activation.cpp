// Activations on a CPU, element by element; the functions stand in kernels/math/activation.h.
#include "kernels/ops/activation.h"

#include "kernels/cpu/core/row_ranges.h"
#include "kernels/math/activation.h"

namespace tilewave {
namespace {

// Calls fn with the activation as a constant, so that the loops inside have no branch.
template <class Fn>
void with_activation(Activation activation, const Fn& fn) {
  switch (activation) {
    case Activation::none:
      return fn(std::integral_constant<Activation, Activation::none>{});
    case Activation::relu:
      return fn(std::integral_constant<Activation, Activation::relu>{});
    case Activation::gelu_tanh:
      return fn(std::integral_constant<Activation, Activation::gelu_tanh>{});
    case Activation::gelu_erf:
      return fn(std::integral_constant<Activation, Activation::gelu_erf>{});
  }
}

template <class T, Activation kActivation>
void activate_row(const ActivationArgs& args, std::int64_t r) {
  const T* x = args.x.row<T>(r);
  T* y = args.y.row<T>(r);
#pragma GCC ivdep
  for (std::int64_t c = 0; c < args.y.cols; ++c) y[c] = activate(kActivation, x[c]);
}

template <class T, Activation kActivation>
void activate_row_backward(const ActivationBackwardArgs& args, std::int64_t r) {
  const T* x = args.x.row<T>(r);
  const T* dy = args.dy.row<T>(r);
  T* dx = args.dx.row<T>(r);
  if (args.accumulate) {
#pragma GCC ivdep
    for (std::int64_t c = 0; c < args.dx.cols; ++c) dx[c] += dy[c] * activation_derivative(kActivation, x[c]);
  } else {
#pragma GCC ivdep
    for (std::int64_t c = 0; c < args.dx.cols; ++c) dx[c] = dy[c] * activation_derivative(kActivation, x[c]);
  }
}

}  // namespace

void run(CpuQueue& queue, const ActivationArgs& args) {
  check(args);
  with_cpu_float(args.x.dtype, "activation", [&]<class T>(T) {
    with_activation(args.activation, [&](auto activation) {
      for_row_ranges(queue, args.y.rows, args.y.cols, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r) activate_row<T, activation()>(args, r);
      });
    });
  });
}

void run(CpuQueue& queue, const ActivationBackwardArgs& args) {
  check(args);
  with_cpu_float(args.x.dtype, "activation_backward", [&]<class T>(T) {
    with_activation(args.activation, [&](auto activation) {
      for_row_ranges(queue, args.dx.rows, args.dx.cols, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r) activate_row_backward<T, activation()>(args, r);
      });
    });
  });
}

}  // namespace tilewave
