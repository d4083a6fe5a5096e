// ReLU and GELU (Hendrycks and Gimpel, "Gaussian error linear units", 2016) and their derivatives, once for host and device.
//   relu       max(x, 0); a NaN stays one, and the derivative at 0 is 0
//   gelu_tanh  x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
//   gelu_erf   x / 2 (1 + erf(x / sqrt(2)))
// T is float or double.
#pragma once

#include <cmath>

#include "kernels/gemm/problem.h"

#if defined(__CUDACC__)
#define TW_HOST_DEVICE __host__ __device__
#else
#define TW_HOST_DEVICE
#endif

namespace tilewave {

template <class T>
TW_HOST_DEVICE inline T relu(T x) {
  return x < T(0) ? T(0) : x;
}
template <class T>
TW_HOST_DEVICE inline T relu_derivative(T x) {
  return x > T(0) ? T(1) : T(0);
}

template <class T>
TW_HOST_DEVICE inline T gelu_tanh(T x) {
  constexpr T kSqrt2OverPi = T(0.79788456080286535588), kCubic = T(0.044715);
  return T(0.5) * x * (T(1) + std::tanh(kSqrt2OverPi * (x + kCubic * x * x * x)));
}
template <class T>
TW_HOST_DEVICE inline T gelu_tanh_derivative(T x) {
  constexpr T kSqrt2OverPi = T(0.79788456080286535588), kCubic = T(0.044715);
  const T t = std::tanh(kSqrt2OverPi * (x + kCubic * x * x * x));
  return T(0.5) * (T(1) + t) + T(0.5) * x * (T(1) - t * t) * kSqrt2OverPi * (T(1) + T(3) * kCubic * x * x);
}

template <class T>
TW_HOST_DEVICE inline T gelu_erf(T x) {
  constexpr T kSqrtHalf = T(0.70710678118654752440);
  return T(0.5) * x * (T(1) + std::erf(kSqrtHalf * x));
}
template <class T>
TW_HOST_DEVICE inline T gelu_erf_derivative(T x) {
  constexpr T kSqrtHalf = T(0.70710678118654752440), kNormalDensityAt0 = T(0.39894228040143267794);
  return T(0.5) * (T(1) + std::erf(kSqrtHalf * x)) + x * kNormalDensityAt0 * std::exp(T(-0.5) * x * x);
}

template <class T>
TW_HOST_DEVICE inline T activate(Activation activation, T x) {
  switch (activation) {
    case Activation::none:
      return x;
    case Activation::relu:
      return relu(x);
    case Activation::gelu_tanh:
      return gelu_tanh(x);
    case Activation::gelu_erf:
      return gelu_erf(x);
  }
  return x;
}

// d activate(x) / d x; for relu x may be the activation's output.
template <class T>
TW_HOST_DEVICE inline T activation_derivative(Activation activation, T x) {
  switch (activation) {
    case Activation::none:
      return T(1);
    case Activation::relu:
      return relu_derivative(x);
    case Activation::gelu_tanh:
      return gelu_tanh_derivative(x);
    case Activation::gelu_erf:
      return gelu_erf_derivative(x);
  }
  return T(1);
}

}  // namespace tilewave
