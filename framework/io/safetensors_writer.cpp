// Writes the safetensors format.
#include "framework/io/safetensors_writer.h"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

namespace tilewave {
namespace {

constexpr std::int64_t kDataAlignment = 64;

std::string json_string(const std::string& text) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    throw Error(concat("the name \"", printable(text), "\" is not UTF-8 and cannot stand in a safetensors header; rename it."));
  }
}

std::int64_t bytes_of(const TensorSource& tensor) {
  const std::optional<std::int64_t> bits = bits_of(tensor.type, tensor.shape);
  TW_CHECK(bits && *bits % 8 == 0, "tensor \"", printable(tensor.name), "\" of ", bits_of(tensor.type),
           " bits an element has a shape that no file can hold; give it dimensions that fill whole bytes.");
  return *bits / 8;
}

std::string header_of(const std::vector<const TensorSource*>& tensors, const std::map<std::string, std::string>& metadata) {
  std::string json = "{";
  if (!metadata.empty()) {
    json += "\"__metadata__\":{";
    for (const auto& [key, value] : metadata) json += json_string(key) + ":" + json_string(value) + ",";
    json.back() = '}';
    json += ",";
  }
  std::int64_t offset = 0;
  for (const TensorSource* tensor : tensors) {
    const std::int64_t end = offset + bytes_of(*tensor);
    std::string shape;
    for (const std::int64_t dimension : tensor->shape) shape += (shape.empty() ? "" : ",") + std::to_string(dimension);
    json += concat(json_string(tensor->name), R"(:{"dtype":")", name_of(tensor->type), R"(","shape":[)", shape, R"(],"data_offsets":[)",
                   offset, ",", end, "]},");
    offset = end;
  }
  if (json.back() == ',') json.pop_back();
  json += "}";
  const std::size_t unaligned = (sizeof(std::uint64_t) + json.size()) % kDataAlignment;
  return json.append(unaligned == 0 ? 0 : kDataAlignment - unaligned, ' ');
}

}  // namespace

TensorSource host_tensor(std::string name, ConstMatrixView view, std::vector<std::int64_t> shape) {
  auto stream = [view](const ByteSink& sink) {
    const std::int64_t element = size_of(view.dtype);
    const auto* data = static_cast<const std::byte*>(view.data);
    const bool packed = view.ld == view.cols || view.rows <= 1;
    const std::int64_t pieces = packed ? 1 : view.rows;
    for (std::int64_t piece = 0; piece < pieces; ++piece) {
      sink({data + piece * view.ld * element, static_cast<std::size_t>((packed ? view.rows : 1) * view.cols * element)});
    }
  };
  return {.name = std::move(name), .type = stored_type(view.dtype), .shape = std::move(shape), .stream = std::move(stream)};
}

TensorSource host_tensor(std::string name, ConstMatrixView view) { return host_tensor(std::move(name), view, {view.rows, view.cols}); }

void write_safetensors(OutputFile& file, const SafetensorsContents& contents) {
  std::vector<const TensorSource*> tensors;
  std::set<std::string_view> names{"__metadata__"};
  for (const TensorSource& tensor : contents.tensors) {
    TW_CHECK(names.insert(tensor.name).second, "two tensors of one file cannot both be called \"", printable(tensor.name),
             "\"; rename one.");
    tensors.push_back(&tensor);
  }
  std::stable_sort(tensors.begin(), tensors.end(), [](auto* a, auto* b) { return bits_of(a->type) > bits_of(b->type); });

  const std::string header = header_of(tensors, contents.metadata);
  std::array<char, 8> length{};
  for (std::size_t i = 0; i < length.size(); ++i) length[i] = static_cast<char>(header.size() >> (8 * i) & 0xffu);
  file.write(std::string_view(length.data(), length.size()));
  file.write(header);

  for (const TensorSource* tensor : tensors) {
    std::int64_t streamed = 0;
    tensor->stream([&](std::span<const std::byte> bytes) {
      file.write(bytes);
      streamed += std::ssize(bytes);
    });
    TW_CHECK(streamed == bytes_of(*tensor), "tensor \"", printable(tensor->name), "\" streamed ", streamed,
             " bytes, but its shape and type ask for ", bytes_of(*tensor), "; make its source and its shape agree.");
  }
}

FileDigest write_safetensors(const std::filesystem::path& path, const SafetensorsContents& contents) {
  return write_file_atomically(path, [&](OutputFile& file) { write_safetensors(file, contents); });
}

}  // namespace tilewave
