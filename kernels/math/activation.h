// ReLU and GELU (Hendrycks and Gimpel, "Gaussian error linear units", 2016) and their derivatives, once for host and device.
//   relu       max(x, 0); a NaN stays one, and the derivative at 0 is 0
//   gelu_tanh  x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), computed as x / (1 + e^(-2 u)), u the argument of tanh
//   gelu_erf   x / 2 (1 + erf(x / sqrt(2))), computed as x times the normal distribution
// T is float or double.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "kernels/core/dtype.h"
#include "kernels/core/host_device.h"
#include "kernels/gemm/problem.h"

namespace tilewave {

template <class T>
TW_HOST_DEVICE inline T relu(T x) {
  return x < T(0) ? T(0) : x;
}
template <class T>
TW_HOST_DEVICE inline T relu_derivative(T x) {
  return x > T(0) ? T(1) : T(0);
}

// e^x. In fp32 free of branches and calls, so that loops over it become vector code: x = n ln 2 + r, |r| <= ln 2 / 2, the
// series of e^r to r^7, 2^n into the exponent's bits. Arguments below -87 or above 88 count as those.
TW_HOST_DEVICE inline double exponential(double x) { return std::exp(x); }
#if defined(__CUDACC__)
// 2^x by the special function unit, good to 2 ulp; 0 where that is subnormal.
__device__ inline float power_of_two(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}
#endif
TW_HOST_DEVICE inline float exponential(float x) {
#if defined(__CUDA_ARCH__)
  return power_of_two((x > 88.0f ? 88.0f : x) * 1.44269504f);
#else
  constexpr float log2_e = 1.44269504f, ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;  // ln2_high has 9 bits: n ln2_high is exact
  constexpr float to_integer = 12582912.0f;  // 1.5 x 2^23: added, it leaves round(n) in the lowest bits
  x = x < -87.0f ? -87.0f : x;
  x = x > 88.0f ? 88.0f : x;
  const float shifted = x * log2_e + to_integer;
  const float n = shifted - to_integer;
  const float r = (x - n * ln2_high) - n * ln2_low;
  float series = 1.0f / 5040.0f;
  series = series * r + 1.0f / 720.0f;
  series = series * r + 1.0f / 120.0f;
  series = series * r + 1.0f / 24.0f;
  series = series * r + 1.0f / 6.0f;
  series = series * r + 0.5f;
  series = series * r + 1.0f;
  series = series * r + 1.0f;
  return series * std::bit_cast<float>((std::bit_cast<std::uint32_t>(shifted) + 127u) << 23);
#endif
}

// x / y; in fp32 on a device good to 2 ulp, and 0 where 1 / y is subnormal.
TW_HOST_DEVICE inline double quotient(double x, double y) { return x / y; }
TW_HOST_DEVICE inline float quotient(float x, float y) {
#if defined(__CUDA_ARCH__)
  float reciprocal;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(reciprocal) : "f"(y));
  return x * reciprocal;
#else
  return x / y;
#endif
}

// The standard normal distribution: its density and its integral from -infinity, erfc(-x / sqrt(2)) / 2.
template <class T>
TW_HOST_DEVICE inline T normal_density(T x) {
  return T(0.39894228040143267794) * exponential(T(-0.5) * x * x);
}
TW_HOST_DEVICE inline double normal_cdf(double x) { return 0.5 * std::erfc(-0.70710678118654752440 * x); }
// In fp32 erfc(z) = e^(-z^2) t p(t) with t = 1 / (1 + z / 2) for z >= 0; p interpolates at the Chebyshev nodes of 0 <= z <= 9.5
// and is good to 5.1e-8.
TW_HOST_DEVICE inline float normal_cdf(float x) {
  const float z = 0.70710678f * (x < 0.0f ? -x : x);
  const float t = quotient(1.0f, 1.0f + 0.5f * z);
  float p = -0.0593381259f;
  p = p * t + 0.285979672f;
  p = p * t - 0.490276047f;
  p = p * t + 0.281742193f;
  p = p * t - 0.029231098f;
  p = p * t + 0.203802261f;
  p = p * t + 0.242824091f;
  p = p * t + 0.282412613f;
  p = p * t + 0.282084401f;
  const float tail = 0.5f * exponential(-z * z) * t * p;
  return x < 0.0f ? tail : 1.0f - tail;
}

// e^(-2 u) of tanh's argument u: (1 + tanh(u)) / 2 = 1 / (1 + e^(-2 u)), without cancellation where tanh(u) is near -1.
template <class T>
TW_HOST_DEVICE inline T gelu_tanh_power(T x) {
  return exponential(T(-2.0 * 0.79788456080286535588) * x * (T(1) + T(0.044715) * x * x));
}
template <class T>
TW_HOST_DEVICE inline T gelu_tanh(T x) {
  return quotient(x, T(1) + gelu_tanh_power(x));
}
template <class T>
TW_HOST_DEVICE inline T gelu_tanh_derivative(T x) {
  x = x < T(-16) ? T(-16) : x;  // there and beyond it is 0 or 1 to the last bit of fp64
  x = x > T(16) ? T(16) : x;
  const T power = gelu_tanh_power(x), gate = quotient(T(1), T(1) + power);
  return gate + x * gate * (power * gate) * T(2.0 * 0.79788456080286535588) * (T(1) + T(3.0 * 0.044715) * x * x);
}

template <class T>
TW_HOST_DEVICE inline T gelu_erf(T x) {
  return x * normal_cdf(x);
}
template <class T>
TW_HOST_DEVICE inline T gelu_erf_derivative(T x) {
  return normal_cdf(x) + x * normal_density(x);
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

#if defined(__CUDACC__)
// The same of what is rounded to To next. Where that is bf16, of 8 bits, the special function unit's tanh is enough, whose relative error
// is at most 2^-11 (PTX ISA, "tanh.approx").
__device__ inline float tanh_to_11_bits(float x) {
  float y;
  asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
// Of several at a time, each step of all of them before the next, so that none waits for the one before it.
template <int kCount>
__device__ inline void gelu_tanh_to_8_bits(float (&x)[kCount]) {
  float t[kCount];
  for (int i = 0; i < kCount; ++i) t[i] = x[i] * x[i];
  for (int i = 0; i < kCount; ++i) t[i] = 0.79788456f + 0.79788456f * 0.044715f * t[i];
  for (int i = 0; i < kCount; ++i) t[i] = tanh_to_11_bits(t[i] * x[i]);
  for (int i = 0; i < kCount; ++i) x[i] *= 0.5f;
  for (int i = 0; i < kCount; ++i) x[i] += x[i] * t[i];
}
template <class To, class T>
__device__ inline T activate_to(Activation activation, T x) {
  if constexpr (std::is_same_v<To, bf16> && std::is_same_v<T, float>) {
    if (activation == Activation::gelu_tanh) {
      float one[] = {x};
      gelu_tanh_to_8_bits(one);
      return one[0];
    }
  }
  return activate(activation, x);
}
template <class To, class T>
__device__ inline T activation_derivative_to(Activation activation, T x) {
  if constexpr (std::is_same_v<To, bf16> && std::is_same_v<T, float>) {
    if (activation == Activation::gelu_tanh) {
      x = x < -16.0f ? -16.0f : x;  // beyond, it is what it is there
      x = x > 16.0f ? 16.0f : x;
      const float square = x * x, t = tanh_to_11_bits(x * (0.79788456f + 0.79788456f * 0.044715f * square));
      const float half_slope = x * (0.5f * 0.79788456f + 1.5f * 0.79788456f * 0.044715f * square);
      return (0.5f + 0.5f * t) + half_slope * (1.0f - t * t);
    }
  }
  return activation_derivative(activation, x);
}
#endif

}  // namespace tilewave
