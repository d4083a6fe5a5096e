// Element types on the device: dtype.h's 16-bit floats are storage there too; arithmetic is in float, fp64's in double.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/core/view.h"

namespace tilewave {

// The type that arithmetic on T is done in.
template <class T>
struct ArithmeticOf {
  using Type = float;
};
template <>
struct ArithmeticOf<double> {
  using Type = double;
};
template <class T>
using Arithmetic = typename ArithmeticOf<T>::Type;

template <class T>
__device__ __forceinline__ Arithmetic<T> load(T value) {
  if constexpr (std::is_same_v<T, bf16>) {
    return __uint_as_float(static_cast<unsigned>(value.bits) << 16);
  } else if constexpr (std::is_same_v<T, f16>) {
    return __half2float(__ushort_as_half(value.bits));
  } else {
    return value;
  }
}

// Rounds to nearest even.
template <class T>
__device__ __forceinline__ T store(Arithmetic<T> value) {
  T stored;
  if constexpr (std::is_same_v<T, bf16>) {
    stored.bits = __bfloat16_as_ushort(__float2bfloat16_rn(value));
  } else if constexpr (std::is_same_v<T, f16>) {
    stored.bits = __half_as_ushort(__float2half_rn(value));
  } else {
    stored = value;
  }
  return stored;
}

// Calls fn with a value of the floating-point element type.
template <class Fn>
void with_float(DType dtype, const char* operation, Fn&& fn) {
  switch (dtype) {
    case DType::f64:
      return fn(double{});
    case DType::f32:
      return fn(float{});
    case DType::bf16:
      return fn(bf16{});
    case DType::f16:
      return fn(f16{});
    case DType::i32:
      break;
  }
  throw Error(concat(operation, ": it takes floating-point matrices, not ", name_of(dtype), "."));
}

// Calls fn with a value of the element type of 16 bits.
template <class Fn>
void with_half(DType dtype, const char* operation, Fn&& fn) {
  if (dtype == DType::bf16) return fn(bf16{});
  TW_CHECK(dtype == DType::f16, operation, ": it takes matrices of bf16 or f16, not ", name_of(dtype), ".");
  fn(f16{});
}

// Of a matrix that a kernel converts to fp32 and back, telling f32 from bf16 and taking the rest for f16.
inline void check_converted(const char* name, const ConstMatrixView& view) {
  TW_CHECK(!view || view.dtype == DType::f32 || view.dtype == DType::bf16 || view.dtype == DType::f16, "gemm: ", name, " is ",
           name_of(view.dtype), "; beside operands of 32 bits and fewer it must be f32, bf16 or f16.");
}

}  // namespace tilewave
