// What an operation demands of its views, checked by every back end before any work: shape and element type, in a sentence that
// names the operation, the argument, what it is and what it must be. kernels/<op>.cpp holds each operation's check(args).
#pragma once

#include <string_view>

#include "kernels/core/view.h"

namespace tilewave {

struct ViewShape {
  std::int64_t rows = 0, cols = 0;
  DType dtype = DType::f32;

  friend bool operator==(const ViewShape&, const ViewShape&) = default;
  friend std::ostream& operator<<(std::ostream& stream, const ViewShape& shape) {
    return stream << name_of(shape.dtype) << " [" << shape.rows << ", " << shape.cols << "]";
  }
};

inline ViewShape shape_of(const ConstMatrixView& view) { return {.rows = view.rows, .cols = view.cols, .dtype = view.dtype}; }

// The type of what is computed from a matrix of that type and kept beside it: means, log-sum-exps, losses, gradients of parameters.
constexpr DType statistics_of(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

class Contract {
 public:
  explicit Contract(std::string_view operation) : operation_(operation) {}

  void expect(std::string_view name, const ConstMatrixView& view, const ViewShape& shape) const {
    TW_CHECK(view || shape.rows * shape.cols == 0, operation_, ": ", name, " is absent; it must be ", shape, ".");
    TW_CHECK(shape_of(view) == shape, operation_, ": ", name, " is ", shape_of(view), "; it must be ", shape, ".");
  }
  void expect_if_present(std::string_view name, const ConstMatrixView& view, const ViewShape& shape) const {
    if (view) expect(name, view, shape);
  }

 private:
  std::string_view operation_;
};

}  // namespace tilewave
