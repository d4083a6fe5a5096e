// A run as a folder that transformers loads: config.json and model.safetensors, with the names and layouts of a GPT-2, or, where its norms
// are RMSNorms, of a Llama, a Qwen2 or a Qwen3, and the run's tokenizer where it is one that others read.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tilewave {

struct ExportedModel {
  std::int64_t step = 0;  // that the weights were saved after
  std::int64_t tensors = 0;
  std::vector<std::string> files;  // that were written
  std::vector<std::string> notes;  // sentences a person should read
};

// Of the newest valid checkpoint, bit for bit. InputError where the run's model is of neither form, or has no checkpoint, or where the
// folder holds one of the files already.
ExportedModel export_model(const std::filesystem::path& run_folder, const std::filesystem::path& out);

}  // namespace tilewave
