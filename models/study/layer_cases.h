// The layers of a model as functions of leaves, for gradient checks: each kind alone on random inputs, and the whole model with its loss.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "framework/autograd/gradcheck.h"
#include "framework/nn/parameters.h"
#include "models/recipe/recipe.h"
#include "models/transformer/sublayer.h"

namespace tilewave {

struct LayerCase {
  std::string name;
  GradcheckFunction function;
  std::vector<NamedVariable> variables;
};

class LayerCases {
 public:
  LayerCases(Context& context, const ResolvedRecipe& resolved, std::uint64_t seed) : context_(context), resolved_(resolved), seed_(seed) {}
  virtual ~LayerCases() = default;
  LayerCases(const LayerCases&) = delete;
  LayerCases& operator=(const LayerCases&) = delete;

  virtual LayerCase make(const std::string& layer) = 0;  // what it refers to lives as long as this

 protected:
  const ModelConfig& config() const { return resolved_.recipe.model; }
  DropoutRates rates() const { return {.hidden = config().dropout, .attention = config().attention_dropout}; }
  Parameters& new_parameters() { return parameters_.emplace_back(context_, seed_); }
  Variable input(std::int64_t rows);  // [rows, d_model]
  // All of a case's parameters under their names within the layer. Biases and norms are moved off their first zeros and ones.
  std::vector<NamedVariable> leaves(const Parameters& parameters, const std::string& layer);
  Variable loss(Context& context, const Variable& logits, const Tensor& labels) const;
  std::vector<std::uint8_t> random_shades(std::int64_t count) const;

  Context& context_;
  const ResolvedRecipe& resolved_;
  std::uint64_t seed_;

 private:
  void shift(const Tensor& tensor);

  std::uint64_t inputs_ = 0;
  std::deque<Parameters> parameters_;
};

// Of the recipe's model, with its batch in the context: sequences of these lengths, or pictures. Both outlive what is returned.
struct CheckedSequences {
  std::vector<std::int64_t> source, target;  // lengths in tokens
};
std::unique_ptr<LayerCases> transformer_cases(Context& context, const ResolvedRecipe& resolved, const CheckedSequences& sequences,
                                              std::uint64_t seed);
std::unique_ptr<LayerCases> classifier_cases(Context& context, const ResolvedRecipe& resolved, std::uint64_t seed);

}  // namespace tilewave
