// Whose names a file's tensors have, and where in it each of tilewave's parameters stands (docs/use/huggingface.md): tilewave's own,
// GPT-2's as Hugging Face has them, with `transformer.` or without, those of its Llama, which Qwen2 and Qwen3 share, with `model.` or
// without, and those of torch.nn.Transformer, beside which embeddings and vocabulary projection keep tilewave's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/exchange/weight_source.h"

namespace tilewave {

enum class WeightNames : std::uint8_t { tilewave, gpt2, llama, torch };

constexpr std::string_view name_of(WeightNames names) {
  constexpr std::string_view all[] = {"tilewave", "GPT-2", "Llama", "torch.nn.Transformer"};
  return all[static_cast<int>(names)];
}

struct NamedWeights {
  WeightNames names = WeightNames::tilewave;
  std::string prefix;  // before each of the names
};

// InputError for names of models whose blocks tilewave does not have: it says which.
NamedWeights recognised(const WeightSource& source);

// The tensor that a parameter, or one of its parts, comes from. Of a matrix of `parts` parts of equal width those from first_part on.
struct WeightPlace {
  std::string name;
  bool transposed = false;  // [in, out], as Conv1D has it
  std::int64_t first_part = 0, parts = 1, taken = 1;
};
// Of a parameter of `parts` parts (ParameterSpec::parts), one or one a part. None where these names have nothing for it.
std::vector<WeightPlace> places_of(std::string_view parameter, std::size_t parts, const NamedWeights& weights);

// What GPT-2's and Llama's files hold and no parameter is made of: masks, frequencies; and of a step between files, all but the weights.
bool is_constant(std::string_view tensor, const NamedWeights& weights);

}  // namespace tilewave
