// Reads the safetensors format (https://github.com/huggingface/safetensors, "Format"). The constructor believes nothing: length,
// JSON, names, types, shapes and byte ranges are checked, and memory is bounded by kMaxHeaderBytes, before a tensor is offered.
// Every defect is an InputError of one sentence that names the file and, where there is one, the tensor.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "framework/io/file.h"
#include "framework/io/stored_type.h"
#include "kernels/core/view.h"

namespace tilewave {

inline constexpr std::int64_t kMaxHeaderBytes = 100'000'000;  // the format's own limit
inline constexpr std::size_t kMaxDimensions = 64;

struct StoredTensor {
  std::string name;
  StoredType type = StoredType::f32;
  std::vector<std::int64_t> shape;
  std::int64_t offset = 0;  // bytes from the beginning of the file
  std::int64_t bytes = 0;
};

class SafetensorsReader {
 public:
  explicit SafetensorsReader(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return file_.path(); }
  const std::vector<StoredTensor>& tensors() const { return tensors_; }  // in the order of their data
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const StoredTensor* find(std::string_view name) const;  // null: there is none
  const StoredTensor& at(std::string_view name) const;    // InputError: there is none

  void read(const StoredTensor& tensor, std::span<std::byte> out) const;  // exactly tensor.bytes
  void read_part(const StoredTensor& tensor, std::int64_t first_byte, std::span<std::byte> out) const;
  // Into host rows of any pitch. InputError unless the type is out's and the shape, taken as rows of its last dimension, is out's.
  void read(std::string_view name, const MatrixView& out) const;

 private:
  InputFile file_;
  std::vector<StoredTensor> tensors_;
  std::vector<std::size_t> by_name_;
  std::map<std::string, std::string> metadata_;
};

// A matrix of ids: an I32 tensor of shape [rows, cols] with no more than most_elements.
struct Int32Matrix {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::vector<std::int32_t> values;  // [rows, cols]
};

Int32Matrix read_int32_matrix(const SafetensorsReader& reader, std::string_view name, std::int64_t most_elements = std::int64_t{1} << 28);

std::string shape_text(const std::vector<std::int64_t>& shape);  // "[2, 3]"

}  // namespace tilewave
