// alpha and beta as a kernel reads them.
#pragma once

#include <type_traits>

#include "kernels/gemm/gemm.h"

namespace tilewave {

// A GemmScalar in both types of sums: a conversion on the device would take the slow fp64 units.
struct Factor {
  double value = 1.0;
  float value_f32 = 1.0F;
  const void* at = nullptr;

  static Factor of(const GemmScalar& scalar) {
    return {.value = scalar.value, .value_f32 = static_cast<float>(scalar.value), .at = scalar.at};
  }
  __host__ __device__ bool is_one() const { return value == 1.0 && at == nullptr; }
  template <class T>
  __device__ __forceinline__ T load() const {
    const T own = std::is_same_v<T, double> ? static_cast<T>(value) : static_cast<T>(value_f32);
    return at != nullptr ? own * *static_cast<const T*>(at) : own;
  }
};

}  // namespace tilewave
