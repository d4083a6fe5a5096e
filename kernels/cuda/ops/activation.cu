// Activations and their derivatives, a pack at a time; the functions stand in kernels/math/activation.h.
#include "kernels/cuda/core/map_packs.h"
#include "kernels/math/activation.h"
#include "kernels/ops/activation.h"

namespace tilewave {
namespace {

template <Activation kActivation>
struct ActivationFunction {
  template <class A>
  __device__ __forceinline__ static A of(A x) {
    return activate(kActivation, x);
  }
  template <class A>
  __device__ __forceinline__ static A derivative(A x) {
    return activation_derivative(kActivation, x);
  }
  TW_HOST_DEVICE static const ConstMatrixView& saved(const ActivationBackwardArgs& args) { return args.x; }
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
    with_activation(args.activation, [&](auto which) { launch_map<T, ActivationFunction<which()>>(queue, "activation", args); });
  });
}

void run(CudaQueue& queue, const ActivationBackwardArgs& args) {
  check(args);
  with_float(args.x.dtype, "activation_backward", [&]<class T>(T) {
    with_activation(args.activation, [&](auto which) {
      using Packs = MapPacksBackward<T, ActivationFunction<which()>, ActivationBackwardArgs>;
      launch_map_backward<Packs>(queue, "activation_backward", args);
    });
  });
}

}  // namespace tilewave
