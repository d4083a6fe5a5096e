// Two 16-bit floats in a word, as mma takes and leaves them; and words that change places between four lanes.
#pragma once

#include "kernels/cuda/core/elements.h"

namespace tilewave {

template <class T>
__device__ __forceinline__ float2 unpack(unsigned pair) {
  if constexpr (std::is_same_v<T, bf16>) {
    return {__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000u)};
  } else {
    return __half22float2(*reinterpret_cast<const __half2*>(&pair));
  }
}
// Rounds to nearest even.
template <class T>
__device__ __forceinline__ unsigned pack(float low, float high) {
  if constexpr (std::is_same_v<T, bf16>) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<const unsigned*>(&pair);
  } else {
    const __half2 pair = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned*>(&pair);
  }
}

// The derivatives of gelu_tanh (kernels/math/activation.h) at pairs of bf16, for what is rounded to bf16's 8 bits next: in f16, two at a
// time. By the same arithmetic on a host, tanh off by up to 2^-11, their error's root mean square is 0.0003 where x is normally
// distributed, a quarter of what bf16 rounds them by, and 0.006 at most. Each step of all pairs comes before the next step, so that none
// waits for the one before it.
template <int kCount>
__device__ __forceinline__ void gelu_tanh_derivatives_to_8_bits(const unsigned (&pairs)[kCount], float2 (&derivatives)[kCount]) {
  const auto twice = [](float x) { return __float2half2_rn(x); };
  __half2 x[kCount], square[kCount], t[kCount];
  for (int i = 0; i < kCount; ++i) {  // a NaN stays one; beyond -16 and 16 the derivative is what it is there
    unsigned pair = pairs[i];
    auto& both = reinterpret_cast<__nv_bfloat162&>(pair);
    both = __hmin2_nan(__hmax2_nan(both, __float2bfloat162_rn(-16.0f)), __float2bfloat162_rn(16.0f));
    const float2 wide = unpack<bf16>(pair);
    x[i] = __floats2half2_rn(wide.x, wide.y);
  }
  for (int i = 0; i < kCount; ++i) square[i] = __hmul2(x[i], x[i]);
  for (int i = 0; i < kCount; ++i) t[i] = __hmul2(x[i], __hfma2(square[i], twice(0.79788456f * 0.044715f), twice(0.79788456f)));
  for (int i = 0; i < kCount; ++i) {
    asm("tanh.approx.f16x2 %0, %1;" : "=r"(reinterpret_cast<unsigned&>(t[i])) : "r"(reinterpret_cast<const unsigned&>(t[i])));
  }
  for (int i = 0; i < kCount; ++i) {  // half the slope of tanh's argument, times x
    square[i] = __hmul2(x[i], __hfma2(square[i], twice(1.5f * 0.79788456f * 0.044715f), twice(0.5f * 0.79788456f)));
  }
  for (int i = 0; i < kCount; ++i) x[i] = __hfma2(t[i], twice(0.5f), twice(0.5f));
  for (int i = 0; i < kCount; ++i) t[i] = __hfma2(__hneg2(t[i]), t[i], twice(1.0f));
  for (int i = 0; i < kCount; ++i) derivatives[i] = __half22float2(__hfma2(square[i], t[i], x[i]));
}

// Word i of each of a quad's lanes becomes lane i's, in the lanes' order: what were 2 columns of 4 groups in each are 8 columns of one.
template <class Word>
__device__ __forceinline__ void transpose_in_quad(Word (&w)[4]) {
  const auto exchange = [&](int low, int high, int distance) {
    const bool upper = (threadIdx.x & static_cast<unsigned>(distance)) != 0;
    const Word theirs = __shfl_xor_sync(0xffffffffu, upper ? w[low] : w[high], distance);
    w[low] = upper ? theirs : w[low];
    w[high] = upper ? w[high] : theirs;
  };
  exchange(0, 1, 1);
  exchange(2, 3, 1);
  exchange(0, 2, 2);
  exchange(1, 3, 2);
}

}  // namespace tilewave
