// A recipe of a config.json of Hugging Face's transformers: of a GPT-2, a Llama, a Qwen2 or a Qwen3. Every field is used, known to change
// no number that tilewave computes, or refused in a sentence.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "models/recipe/recipe.h"

namespace tilewave {

struct ImportedConfig {
  Recipe recipe;                      // its model and a batch; what it trains on is for a person to say
  std::string family;                 // "GPT-2", "Llama", "Qwen2", "Qwen3"
  std::vector<std::string> used;      // fields, in the order in which they stand
  std::vector<std::string> harmless;  // those that change nothing
  std::string tokenizer;              // what became of the tokenizer beside it, a sentence
};

// FOLDER/config.json, or the file itself. A tokenizer.json beside it that tilewave reads is the recipe's, to train on text with. InputError
// names the field, its value and what tilewave has in its place.
ImportedConfig import_config(const std::filesystem::path& path);

}  // namespace tilewave
