// Tensors' elements on the host, as doubles or as raw rows: for initialisation, files, tests and gradient checks. Under a trace
// nothing is written, and reading is an error.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "framework/tensor/context.h"
#include "framework/tensor/tensor.h"

namespace tilewave {

// Rows of a matrix that are about a MiB of such elements, at least one: what is on the host at a time where a tensor goes over in pieces.
std::int64_t rows_of_piece(const Shape& shape, std::int64_t element_bytes);
inline std::int64_t rows_of_piece(const Tensor& tensor, std::int64_t element_bytes) { return rows_of_piece(tensor.shape(), element_bytes); }

// Sets each element to element(row, column), rounded to the tensor's type.
void write_elements(Context& context, const Tensor& tensor, const std::function<double(std::int64_t row, std::int64_t column)>& element);

// Logical elements, row after row.
std::vector<double> read_elements(Context& context, const Tensor& tensor);
void write_elements(Context& context, const Tensor& tensor, const std::vector<double>& elements);

// Logical elements as they are stored, row after row, to or from rows x cols x size_of(dtype) bytes.
void read_rows(Context& context, const Tensor& tensor, void* host);
void write_rows(Context& context, const Tensor& tensor, const void* host);

// int32 tensors: ids, lengths, labels.
void write_ids(Context& context, const Tensor& tensor, const std::vector<std::int32_t>& ids);
void write_ids(Context& context, const Tensor& tensor, std::span<const std::int32_t> ids);

}  // namespace tilewave
