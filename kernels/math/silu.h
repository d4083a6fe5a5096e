// SiLU (Elfwing et al., "Sigmoid-weighted linear units", 2017; swish) and its derivative, once for host and device. T is float or double.
//   s = 1 / (1 + e^-x);  silu(x) = x s;  silu'(x) = s (1 + x (1 - s))
#pragma once

#include "kernels/math/activation.h"

namespace tilewave {

template <class T>
TW_HOST_DEVICE inline T silu(T x) {
  return quotient(x, T(1) + exponential(-x));
}
template <class T>
TW_HOST_DEVICE inline T silu_derivative(T x) {
  const T gate = quotient(T(1), T(1) + exponential(-x));
  return gate * (T(1) + x * (T(1) - gate));
}

}  // namespace tilewave
