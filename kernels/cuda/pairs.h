// Two 16-bit floats in a word, as mma takes and leaves them; and words that change places between four lanes.
#pragma once

#include "kernels/cuda/elements.h"

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

// Of bf16, each no further from 0 than 16; a NaN stays one.
__device__ __forceinline__ unsigned within_16(unsigned pair) {
  auto& both = reinterpret_cast<__nv_bfloat162&>(pair);
  both = __hmin2_nan(__hmax2_nan(both, __float2bfloat162_rn(-16.0f)), __float2bfloat162_rn(16.0f));
  return pair;
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
