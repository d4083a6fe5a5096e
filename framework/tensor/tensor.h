// Tensor: a matrix in somebody's memory, with a shape, an element type and a row pitch. Copies share the memory; the last one
// gives it back. A tensor knows nothing of gradients. Under a trace a tensor has an address that nobody may read.
#pragma once

#include <cstdint>
#include <memory>

#include "framework/tensor/shape.h"
#include "kernels/core/view.h"

namespace tilewave {

class Tensor {
 public:
  Tensor() = default;
  // Rows of `pitch` elements each, in memory that `storage` owns.
  Tensor(std::shared_ptr<void> storage, Shape shape, std::int64_t pitch, DType dtype);

  explicit operator bool() const { return storage_ != nullptr; }
  const Shape& shape() const { return shape_; }
  std::int64_t rows() const { return shape_.rows; }
  std::int64_t cols() const { return shape_.cols; }
  std::int64_t pitch() const { return pitch_; }
  DType dtype() const { return dtype_; }
  std::int64_t bytes() const { return shape_.rows * pitch_ * size_of(dtype_); }  // with its pitch
  void* data() const { return data_; }
  MatrixView view() const { return {data_, shape_.rows, shape_.cols, pitch_, dtype_}; }

  // Tensors that hold the memory, this one and every copy and view of it.
  std::int64_t owners() const { return storage_.use_count(); }

  // The same memory seen as fewer columns or rows. Throw where the range reaches past the tensor.
  Tensor columns(std::int64_t first, std::int64_t count) const;
  Tensor slice_rows(std::int64_t first, std::int64_t count) const;
  // Elements of a vector from `first` on, as rows of `pitch` elements each, the last one without what follows its columns.
  Tensor as_rows(std::int64_t first, Shape shape, std::int64_t pitch) const;

 private:
  std::shared_ptr<void> storage_;
  void* data_ = nullptr;
  Shape shape_;
  std::int64_t pitch_ = 0;
  DType dtype_ = DType::f32;
};

// Throws an Error that names the operation, what the two tensors are, and both shapes, where these differ.
void check_same_shape(const char* operation, const char* what_a, Shape a, const char* what_b, Shape b);

}  // namespace tilewave
