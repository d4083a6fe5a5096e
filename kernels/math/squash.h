// Sigmoid and tanh, and their derivatives by their results, once for host and device. T is float or double.
//   sigmoid  1 / (1 + e^-x), whose derivative is y (1 - y);  tanh's is 1 - y^2
// In fp32 tanh is (1 - e^(-2 |x|)) / (1 + e^(-2 |x|)) with x's sign, and from 0.625 down, where that cancels, x + x^3 p(x^2): p
// interpolates at the Chebyshev nodes, and the relative error is below 2^-23.
#pragma once

#include "kernels/math/activation.h"
#include "kernels/ops/squash.h"

namespace tilewave {

template <class T>
TW_HOST_DEVICE inline T sigmoid(T x) {
  return quotient(T(1), T(1) + exponential(-x));
}

TW_HOST_DEVICE inline double hyperbolic_tangent(double x) { return std::tanh(x); }
TW_HOST_DEVICE inline float hyperbolic_tangent(float x) {
  const float size = x < 0.0f ? -x : x, square = x * x;
  float p = -0.00609671416f;
  p = p * square + 0.020997179f;
  p = p * square - 0.0538509096f;
  p = p * square + 0.133327697f;
  p = p * square - 0.333333289f;
  const float near = x + x * square * p;
  const float power = exponential(-2.0f * size), far = quotient(1.0f - power, 1.0f + power);
  const float signed_far = x < 0.0f ? -far : far;
  return size < 0.625f ? near : signed_far;
}

template <class T>
TW_HOST_DEVICE inline T squash(Squash kind, T x) {
  return kind == Squash::sigmoid ? sigmoid(x) : hyperbolic_tangent(x);
}
template <class T>
TW_HOST_DEVICE inline T squash_derivative(Squash kind, T y) {
  return kind == Squash::sigmoid ? y * (T(1) - y) : (T(1) - y) * (T(1) + y);
}

}  // namespace tilewave
