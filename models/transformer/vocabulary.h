// Both ends of a Transformer: token embeddings with positions (none where attention turns by them), and the projection onto the vocabulary,
// tied or not. Parameters: embedding.token.weight [V, d_model], embedding.position.weight [max_positions, d_model] (learned positions),
// projection.weight [V, d_model] (not tied). V is the logical vocabulary; rows of zeros pad it to V_padded in memory alone.
#pragma once

#include "framework/autograd/variable.h"
#include "framework/nn/parameters.h"
#include "models/recipe/config.h"

namespace tilewave {

class Vocabulary {
 public:
  Vocabulary(Parameters& parameters, const ModelConfig& config, std::int64_t padded_vocabulary);

  Variable embed(Context& context, const Tensor& ids, const Tensor& position_ids, double rate) const;  // [tokens, d_model]
  Variable logits(Context& context, const Variable& x) const;                                          // [tokens, V_padded]

  std::int64_t size() const { return vocabulary_; }

 private:
  std::int64_t vocabulary_, padded_vocabulary_;
  double scale_;
  Variable tokens_, positions_, projection_;
};

}  // namespace tilewave
