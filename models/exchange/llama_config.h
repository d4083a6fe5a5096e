// config.json of Hugging Face's Llama, Qwen2 and Qwen3, and models of the same mathematics: RMSNorm, rotary positions, grouped queries and
// SwiGLU, without biases, with those of queries, keys and values (Qwen2), or with norms of queries and keys (Qwen3).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "models/exchange/config_fields.h"
#include "models/exchange/text_ends.h"
#include "models/recipe/recipe.h"

namespace tilewave {

enum class LlamaFamily : std::uint8_t { llama, qwen2, qwen3 };

constexpr std::string_view name_of(LlamaFamily family) {
  constexpr std::string_view names[] = {"Llama", "Qwen2", "Qwen3"};
  return names[static_cast<int>(family)];
}
constexpr std::string_view model_type_of(LlamaFamily family) {
  constexpr std::string_view types[] = {"llama", "qwen2", "qwen3"};
  return types[static_cast<int>(family)];
}

ModelConfig llama_model(ConfigFields& fields, LlamaFamily family);

// The text of config.json. InputError where the recipe's model is none of these forms.
std::string llama_config(const Recipe& recipe, DType weights, const TextEnds& ends = {});

}  // namespace tilewave
