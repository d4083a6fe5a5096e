// Whose names a file's tensors have, and where in it each of tilewave's parameters stands (docs/use/huggingface.md): tilewave's own,
// GPT-2's as Hugging Face has them, with `transformer.` or without, and those of torch.nn.Transformer, beside which embeddings
// and vocabulary projection keep tilewave's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "models/exchange/weight_source.h"

namespace tilewave {

enum class WeightNames : std::uint8_t { tilewave, gpt2, torch };

constexpr std::string_view name_of(WeightNames names) {
  return names == WeightNames::tilewave ? "tilewave" : names == WeightNames::gpt2 ? "GPT-2" : "torch.nn.Transformer";
}

struct NamedWeights {
  WeightNames names = WeightNames::tilewave;
  std::string prefix;  // before each of the names
};

// InputError for names of models whose blocks tilewave does not have: it says which.
NamedWeights recognised(const WeightSource& source);

// The tensor that a parameter comes from. Of a matrix of `parts` parts of equal width those from first_part on.
struct WeightPlace {
  std::string name;
  bool transposed = false;  // [in, out], as Conv1D has it
  std::int64_t first_part = 0, parts = 1, taken = 1;
};
// None where these names have nothing for it.
std::optional<WeightPlace> place_of(std::string_view parameter, const NamedWeights& weights);

// What GPT-2's files hold and no parameter is made of: masks.
bool is_constant(std::string_view tensor, const NamedWeights& weights);

}  // namespace tilewave
