// Writes the safetensors format: 8 bytes of header length (little-endian), a JSON header padded by spaces so that the data begins
// at a multiple of 64 bytes, then the tensors without gaps, row-major, the widest element types first (so each is aligned to its
// element). Elements are streamed: no more than a row or what a source hands over is held in memory.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "framework/io/file.h"
#include "framework/io/stored_type.h"
#include "kernels/core/view.h"

namespace tilewave {

using ByteSink = std::function<void(std::span<const std::byte>)>;

struct TensorSource {
  std::string name;
  StoredType type = StoredType::f32;
  std::vector<std::int64_t> shape;
  std::function<void(const ByteSink&)> stream;  // hands the elements over in order, in pieces of any size, when its turn comes
};

// The logical elements of a matrix in host memory, its pitch left out. The view must live until the file is written.
TensorSource host_tensor(std::string name, ConstMatrixView view, std::vector<std::int64_t> shape);
TensorSource host_tensor(std::string name, ConstMatrixView view);  // shape [rows, cols]

struct SafetensorsContents {
  std::vector<TensorSource> tensors;
  std::map<std::string, std::string> metadata;
};

void write_safetensors(OutputFile& file, const SafetensorsContents& contents);
FileDigest write_safetensors(const std::filesystem::path& path, const SafetensorsContents& contents);  // atomically

}  // namespace tilewave
