// A packed copy on the host, converted element by element. A tensor is read in one copy, and written in pieces, so that writing a large
// one takes little more memory than itself.
#include "framework/tensor/host_tensor.h"

#include <algorithm>

#include "kernels/core/element.h"

namespace tilewave {
namespace {

RowsInMemory rows_of(const Tensor& tensor) {
  const std::int64_t size = size_of(tensor.dtype());
  return {.device = tensor.data(), .pitch = tensor.pitch() * size, .row_bytes = tensor.cols() * size, .rows = tensor.rows()};
}

}  // namespace

std::int64_t rows_of_piece(const Shape& shape, std::int64_t element_bytes) {
  constexpr std::int64_t kPieceBytes = 1 << 20;
  return std::clamp<std::int64_t>(kPieceBytes / std::max<std::int64_t>(1, shape.cols * element_bytes), 1,
                                  std::max<std::int64_t>(1, shape.rows));
}

void write_elements(Context& context, const Tensor& tensor, const std::function<double(std::int64_t, std::int64_t)>& element) {
  if (context.tracing()) return;
  const std::int64_t piece_rows = rows_of_piece(tensor, size_of(tensor.dtype()));
  with_element(tensor.dtype(), [&]<class T>(T) {
    std::vector<T> elements(static_cast<std::size_t>(piece_rows * tensor.cols()));
    for (std::int64_t first = 0; first < tensor.rows(); first += piece_rows) {
      const Tensor piece = tensor.slice_rows(first, std::min(piece_rows, tensor.rows() - first));
      T* next = elements.data();
      for (std::int64_t r = first; r < first + piece.rows(); ++r) {
        for (std::int64_t c = 0; c < tensor.cols(); ++c) *next++ = converted<T>(element(r, c));
      }
      copy_rows_to_device(context.queue(), rows_of(piece), elements.data());
    }
  });
}

void write_elements(Context& context, const Tensor& tensor, const std::vector<double>& elements) {
  TW_CHECK(static_cast<std::int64_t>(elements.size()) == tensor.shape().elements(), elements.size(),
           " elements cannot fill a tensor of shape ", tensor.shape(), ".");
  write_elements(context, tensor,
                 [&](std::int64_t row, std::int64_t column) { return elements[static_cast<std::size_t>(row * tensor.cols() + column)]; });
}

void read_rows(Context& context, const Tensor& tensor, void* host) { copy_rows_to_host(context.queue(), host, rows_of(tensor)); }

void write_rows(Context& context, const Tensor& tensor, const void* host) {
  if (!context.tracing()) copy_rows_to_device(context.queue(), rows_of(tensor), host);
}

std::vector<double> read_elements(Context& context, const Tensor& tensor) {
  TW_CHECK(!context.tracing(), "a traced tensor has no elements to read.");
  std::vector<double> elements;
  elements.reserve(static_cast<std::size_t>(tensor.shape().elements()));
  with_element(tensor.dtype(), [&]<class T>(T) {
    std::vector<T> values(static_cast<std::size_t>(tensor.shape().elements()));
    read_rows(context, tensor, values.data());
    for (const T value : values) elements.push_back(converted<double>(value));
  });
  return elements;
}

void write_ids(Context& context, const Tensor& tensor, const std::vector<std::int32_t>& ids) { write_ids(context, tensor, std::span(ids)); }

void write_ids(Context& context, const Tensor& tensor, std::span<const std::int32_t> ids) {
  TW_CHECK(tensor.dtype() == DType::i32 && static_cast<std::int64_t>(ids.size()) == tensor.shape().elements(), ids.size(),
           " ids cannot fill a tensor of shape ", tensor.shape(), " and type ", name_of(tensor.dtype()), ".");
  if (context.tracing()) return;
  copy_rows_to_device(context.queue(), rows_of(tensor), ids.data());
}

}  // namespace tilewave
