#include "models/exchange/weight_source.h"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>

#include "framework/io/checkpoint.h"
#include "framework/io/json_fault.h"
#include "kernels/core/error.h"

namespace tilewave {
namespace fs = std::filesystem;
namespace {

constexpr std::int64_t kMaxIndexBytes = 64 << 20;
constexpr std::string_view kWeightsFile = "model.safetensors", kIndexFile = "model.safetensors.index.json";

bool is_pickle(const fs::path& path) {
  constexpr std::array kPickles = {".bin", ".pt", ".pth", ".ckpt", ".pkl"};
  return std::ranges::find(kPickles, path.extension().string()) != kPickles.end();
}

[[noreturn]] void refuse_pickle(const fs::path& path) {
  fs::path converted = path;
  converted.replace_extension(".safetensors");
  throw InputError(concat(path.string(),
                          ": a pickle runs whatever code is in it when it is read, so tilewave reads none; convert it: "
                          "python3 -c \"import torch; from safetensors.torch import save_file; save_file({k: "
                          "v.clone().contiguous() for k, v in torch.load('",
                          path.string(), "', weights_only=True).items()}, '", converted.string(), "')\""));
}

[[noreturn]] void refuse_folder(const fs::path& folder) {
  for (const std::string& name : names_in(folder)) {
    if (is_pickle(name)) refuse_pickle(folder / name);
  }
  throw InputError(concat(folder.string(), ": holds neither ", kWeightsFile, " nor ", kIndexFile,
                          ", and is no run and no checkpoint; name a .safetensors file, or a folder that holds one of these."));
}

std::map<std::string, std::string> weight_map_of(std::string_view text, std::string_view origin) {
  try {
    return nlohmann::json::parse(text).at("weight_map").get<std::map<std::string, std::string>>();
  } catch (const nlohmann::json::exception& error) {
    throw InputError(concat(origin, ": is no index of shards: ", json_fault(error), "; copy it again."));
  }
}

}  // namespace

std::map<std::string, std::string> parse_weight_index(std::string_view text, std::string_view origin) {
  std::map<std::string, std::string> places = weight_map_of(text, origin);
  TW_CHECK_INPUT(!places.empty(), origin, ": names no tensor; copy it again.");
  for (const auto& [tensor, shard] : places) {
    TW_CHECK_INPUT(!shard.empty() && fs::path(shard).filename() == shard && shard != "." && shard != "..", origin, ": tensor \"",
                   printable(tensor), "\" is to be in \"", printable(shard), "\", which is no file's name; shards lie beside their index.");
  }
  return places;
}

WeightSource::WeightSource(const fs::path& path) : path_(path) {
  std::error_code ignored;
  const bool folder = fs::is_directory(path, ignored);
  if (!folder && is_pickle(path)) refuse_pickle(path);
  if (!folder) {
    path.filename().string().ends_with(".index.json") ? open_shards(path) : open(path);
  } else if (is_there(path / kIndexFile)) {
    open_shards(path / kIndexFile);
  } else if (is_there(path / kWeightsFile)) {
    open(path / kWeightsFile);
  } else if (is_there(path / "COMPLETE")) {
    open(verified_checkpoint(path).weights());
  } else if (is_there(path / "recipe.toml") || has_complete_checkpoints(path)) {
    open_run(path);
  } else {
    refuse_folder(path);
  }
}

void WeightSource::open_run(const fs::path& folder) {
  const CheckpointSearch search = use_latest_valid(folder, [this](const Checkpoint& checkpoint) { open(checkpoint.weights()); });
  TW_CHECK_INPUT(search.newest, folder.string(), ": this run has no valid checkpoint to take weights from; train it for longer.");
}

void WeightSource::open(const fs::path& file) {
  const SafetensorsReader& reader = files_.emplace_back(file);
  for (const StoredTensor& tensor : reader.tensors()) {
    const SourceTensor one{.file = &reader, .tensor = &tensor};
    const auto [held, fresh] = by_name_.try_emplace(tensor.name, one);
    TW_CHECK_INPUT(fresh, file.string(), ": tensor \"", printable(tensor.name), "\" stands in ", held->second.file->path().string(),
                   " too; take shards of one model.");
    tensors_.push_back(one);
  }
}

void WeightSource::open_shards(const fs::path& index) {
  const std::map<std::string, std::string> places = parse_weight_index(read_file(index, kMaxIndexBytes), index.string());
  std::set<std::string> shards;
  for (const auto& [tensor, shard] : places) shards.insert(shard);
  for (const std::string& shard : shards) open(index.parent_path() / shard);
  for (const auto& [tensor, shard] : places) {
    const SourceTensor* found = find(tensor);
    TW_CHECK_INPUT(found != nullptr && found->file->path().filename() == shard, index.string(), ": tensor \"", printable(tensor),
                   "\" is to be in ", printable(shard), " and is not; copy the shards again.");
  }
}

const SourceTensor* WeightSource::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &found->second;
}

}  // namespace tilewave
