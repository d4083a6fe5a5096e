// Where weights come from: a safetensors file, a folder of Hugging Face (model.safetensors, or the shards that
// model.safetensors.index.json names), a checkpoint of tilewave's, or a run, whose newest checkpoint it is then. The files stay open.
// Pickles (.bin, .pt, .pth, .ckpt) are refused with the line that converts them: reading one runs whatever code it holds.
#pragma once

#include <deque>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "framework/io/safetensors_reader.h"

namespace tilewave {

// A tensor and the file that holds it.
struct SourceTensor {
  const SafetensorsReader* file = nullptr;
  const StoredTensor* tensor = nullptr;
};

// {"weight_map": {tensor: shard}} of a model.safetensors.index.json: the shard of each tensor, a file's name without a folder. InputError
// that names `origin` where it is no such text.
std::map<std::string, std::string> parse_weight_index(std::string_view text, std::string_view origin);

class WeightSource {
 public:
  // InputError where nothing is to be read, a shard is missing, or the index and the shards speak of different tensors.
  explicit WeightSource(const std::filesystem::path& path);
  WeightSource(const WeightSource&) = delete;
  WeightSource& operator=(const WeightSource&) = delete;

  const std::filesystem::path& path() const { return path_; }  // as it was named
  const std::deque<SafetensorsReader>& files() const { return files_; }
  const std::vector<SourceTensor>& tensors() const { return tensors_; }
  const SourceTensor* find(std::string_view name) const;  // null: there is none

 private:
  void open(const std::filesystem::path& file);
  void open_run(const std::filesystem::path& folder);
  void open_shards(const std::filesystem::path& index);

  std::filesystem::path path_;
  std::deque<SafetensorsReader> files_;  // whose addresses stay
  std::vector<SourceTensor> tensors_;
  std::unordered_map<std::string_view, SourceTensor> by_name_;
};

}  // namespace tilewave
