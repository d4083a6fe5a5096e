// Activations and their derivatives, a pack at a time; the functions stand in kernels/math/activation.h.
#include "kernels/cuda/core/packs.h"
#include "kernels/math/activation.h"
#include "kernels/ops/activation.h"

namespace tilewave {
namespace {

template <class T, Activation kActivation>
struct Activate {
  static constexpr int kWidth = kPackWidth<T>;
  using Operands = Pack<T>;
  ActivationArgs args;
  std::int64_t cols;

  template <PackAccess kAccess>
  __device__ __forceinline__ Operands load(const Place& at) const {
    return load_pack<kAccess, kWidth>(args.x.row<T>(at.row), at.column, cols);
  }
  template <PackAccess kAccess>
  __device__ __forceinline__ void store(const Place& at, const Operands& pack) const {
    Arithmetic<T> values[kWidth];
#pragma unroll
    for (int i = 0; i < kWidth; ++i) values[i] = activate(kActivation, tilewave::load(pack.get(i)));
    store_pack<kAccess>(args.y.row<T>(at.row), at.column, cols, pack_of<T>(values));
  }
};

template <class T, Activation kActivation>
struct ActivateBackward {
  static constexpr int kWidth = kPackWidth<T>;
  struct Operands {
    Pack<T> x, dy, dx;
  };
  ActivationBackwardArgs args;
  std::int64_t cols;

  template <PackAccess kAccess>
  __device__ __forceinline__ Operands load(const Place& at) const {
    Operands operands;
    operands.x = load_pack<kAccess, kWidth>(args.x.row<T>(at.row), at.column, cols);
    operands.dy = load_pack<kAccess, kWidth>(args.dy.row<T>(at.row), at.column, cols);
    if (args.accumulate) operands.dx = load_pack<kAccess, kWidth>(args.dx.row<const T>(at.row), at.column, cols);
    return operands;
  }
  template <PackAccess kAccess>
  __device__ __forceinline__ void store(const Place& at, const Operands& operands) const {
    Arithmetic<T> values[kWidth];
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      const Arithmetic<T> dy = tilewave::load(operands.dy.get(i)), x = tilewave::load(operands.x.get(i));
      const Arithmetic<T> earlier = args.accumulate ? tilewave::load(operands.dx.get(i)) : Arithmetic<T>(0);
      values[i] = fma(dy, activation_derivative(kActivation, x), earlier);
    }
    store_pack<kAccess>(args.dx.row<T>(at.row), at.column, cols, pack_of<T>(values));
  }
};

// Calls fn with the activation as a constant.
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

}  // namespace

void run(CudaQueue& queue, const ActivationArgs& args) {
  check(args);
  with_float(args.x.dtype, "activation", [&]<class T>(T) {
    with_activation(args.activation, [&](auto activation) {
      const Extent extent = extent_of(kPackWidth<T>, {args.y, args.x});
      launch_elementwise(queue, "activation", Activate<T, activation()>{.args = args, .cols = extent.cols}, extent.rows, extent.access);
    });
  });
}

void run(CudaQueue& queue, const ActivationBackwardArgs& args) {
  check(args);
  with_float(args.x.dtype, "activation_backward", [&]<class T>(T) {
    with_activation(args.activation, [&](auto activation) {
      const Extent extent = extent_of(kPackWidth<T>, {args.dx, args.x, args.dy});
      launch_elementwise(queue, "activation_backward", ActivateBackward<T, activation()>{.args = args, .cols = extent.cols}, extent.rows,
                         extent.access);
    });
  });
}

}  // namespace tilewave
