// A run as a folder that transformers loads: config.json and model.safetensors, GPT-2's names and layouts, and the run's tokenizer where
// it is one that others read.
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

// Of the newest valid checkpoint, bit for bit. InputError where the run's model is none of GPT-2's form, or has no checkpoint, or where the
// folder holds one of the files already.
ExportedModel export_gpt2(const std::filesystem::path& run_folder, const std::filesystem::path& out);

}  // namespace tilewave
