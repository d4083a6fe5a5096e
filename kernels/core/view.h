// A matrix somebody else owns: row r starts at data + r * ld elements. Every matrix carries its leading dimension (its row
// pitch); offsets are 64-bit. A vector is a matrix of one row. A view with no data is absent ("this output is not asked for").
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/core/dtype.h"
#include "kernels/core/error.h"

namespace tilewave {

struct MatrixView {
  void* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t ld = 0;  // elements from one row to the next, >= cols
  DType dtype = DType::f32;

  explicit constexpr operator bool() const { return data != nullptr; }
  template <class T>
  constexpr T* row(std::int64_t index) const {
    return static_cast<T*>(data) + index * ld;
  }
  std::int64_t bytes() const { return rows * cols * size_of(dtype); }  // of the logical elements
};

struct ConstMatrixView {
  const void* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t ld = 0;
  DType dtype = DType::f32;

  ConstMatrixView() = default;
  ConstMatrixView(const void* first, std::int64_t row_count, std::int64_t col_count, std::int64_t pitch, DType type)
      : data(first), rows(row_count), cols(col_count), ld(pitch), dtype(type) {}
  ConstMatrixView(const MatrixView& view)  // NOLINT: a writable view is a readable one
      : data(view.data), rows(view.rows), cols(view.cols), ld(view.ld), dtype(view.dtype) {}

  explicit constexpr operator bool() const { return data != nullptr; }
  template <class T>
  constexpr const T* row(std::int64_t index) const {
    return static_cast<const T*>(data) + index * ld;
  }
  std::int64_t bytes() const { return rows * cols * size_of(dtype); }
};

// Calls fn with a value of the floating-point type that a CPU computes in: float or double.
// Other types are the caller's error; `operation` names who was asked.
template <class Fn>
void with_cpu_float(DType dtype, const char* operation, Fn&& fn) {
  if (dtype == DType::f32) {
    fn(float{});
  } else if (dtype == DType::f64) {
    fn(double{});
  } else {
    throw Error(concat(operation, " on a CPU computes in f32 or f64, not in ", name_of(dtype),
                       "; use --set run.precision=fp32, or a benchmark's --precision fp32."));
  }
}

}  // namespace tilewave
