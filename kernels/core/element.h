// Elements on the host by the type that a DType names, and from one type to another.
#pragma once

#include <cstdint>

#include "kernels/core/dtype.h"

namespace tilewave {

// Calls fn with a value of the element type.
template <class Fn>
constexpr decltype(auto) with_element(DType dtype, Fn&& fn) {
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
  return fn(std::int32_t{});
}

// Through float where one of the two is a 16-bit float: they round from it and widen to it.
template <class To, class From>
constexpr To converted(From value) {
  if constexpr (sizeof(To) == 2 || sizeof(From) == 2) {
    return static_cast<To>(static_cast<float>(value));
  } else {
    return static_cast<To>(value);
  }
}

}  // namespace tilewave
