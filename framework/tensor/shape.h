// Shapes of tensors: every tensor is a matrix [rows, cols]; a vector is one row.
#pragma once

#include <cstdint>
#include <ostream>

namespace tilewave {

struct Shape {
  std::int64_t rows = 0;
  std::int64_t cols = 0;

  std::int64_t elements() const { return rows * cols; }
  friend bool operator==(const Shape&, const Shape&) = default;
  friend std::ostream& operator<<(std::ostream& stream, const Shape& shape) {
    return stream << '[' << shape.rows << ", " << shape.cols << ']';
  }
};

}  // namespace tilewave
