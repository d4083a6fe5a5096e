// Tensor's views and the shape check every operation starts with.
#include "framework/tensor/tensor.h"

#include <utility>

namespace tilewave {

Tensor::Tensor(std::shared_ptr<void> storage, Shape shape, std::int64_t pitch, DType dtype)
    : storage_(std::move(storage)), data_(storage_.get()), shape_(shape), pitch_(pitch), dtype_(dtype) {
  TW_CHECK(shape.rows >= 0 && shape.cols >= 0 && pitch >= shape.cols, "a tensor of shape ", shape, " cannot have a row pitch of ", pitch,
           " elements: the pitch must be at least the number of columns.");
}

Tensor Tensor::columns(std::int64_t first, std::int64_t count) const {
  TW_CHECK(first >= 0 && count >= 0 && first + count <= cols(), "columns ", first, " to ", first + count,
           " do not exist in a tensor of shape ", shape_, ".");
  Tensor part = *this;
  part.shape_.cols = count;
  part.data_ = static_cast<char*>(data_) + first * size_of(dtype_);
  return part;
}

Tensor Tensor::slice_rows(std::int64_t first, std::int64_t count) const {
  TW_CHECK(first >= 0 && count >= 0 && first + count <= rows(), "rows ", first, " to ", first + count,
           " do not exist in a tensor of shape ", shape_, ".");
  Tensor part = *this;
  part.shape_.rows = count;
  part.data_ = static_cast<char*>(data_) + first * pitch_ * size_of(dtype_);
  return part;
}

Tensor Tensor::as_rows(std::int64_t first, Shape shape, std::int64_t pitch) const {
  TW_CHECK(rows() == 1 && first >= 0 && pitch >= shape.cols && first + (shape.rows - 1) * pitch + shape.cols <= cols(), "rows of shape ",
           shape, " that lie ", pitch, " elements apart from element ", first, " on do not exist in a tensor of shape ", shape_, ".");
  Tensor part = *this;
  part.shape_ = shape;
  part.pitch_ = pitch;
  part.data_ = static_cast<char*>(data_) + first * size_of(dtype_);
  return part;
}

void check_same_shape(const char* operation, const char* what_a, Shape a, const char* what_b, Shape b) {
  TW_CHECK(a == b, operation, ": ", what_a, " has shape ", a, " and ", what_b, " has shape ", b, "; they must be the same.");
}

}  // namespace tilewave
