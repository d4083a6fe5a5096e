// config.json of Hugging Face's GPT-2 and a recipe of the same mathematics. Every field of it is used, known to change no number that
// tilewave computes, or refused in a sentence.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "models/recipe/recipe.h"

namespace tilewave {

struct ImportedConfig {
  Recipe recipe;                      // its model and a batch; what it trains on is for a person to say
  std::vector<std::string> used;      // fields, in the order in which they stand
  std::vector<std::string> harmless;  // those that change nothing
  std::string tokenizer;              // what became of the tokenizer beside it, a sentence
};

// FOLDER/config.json, or the file itself. A tokenizer.json beside it that tilewave reads is the recipe's, to train on text with. InputError
// names the field, its value and what tilewave has in its place.
ImportedConfig import_config(const std::filesystem::path& path);

// What a text begins and ends with.
struct TextEnds {
  std::optional<std::int32_t> begin, end;
};

// The text of config.json. InputError where the recipe's model is none of GPT-2's form.
std::string gpt2_config(const Recipe& recipe, DType weights, const TextEnds& ends = {});

}  // namespace tilewave
