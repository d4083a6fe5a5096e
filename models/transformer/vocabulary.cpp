// Sinusoidal positions have values up to 1, so token embeddings are multiplied by sqrt(d_model) before they are added to them
// (Vaswani et al., "Attention Is All You Need", 2017, section 3.4); learned positions start small and need no scale, nor do rotary ones,
// which attention has.
#include "models/transformer/vocabulary.h"

#include <cmath>

#include "framework/ops/dropout.h"
#include "framework/ops/embedding.h"
#include "framework/ops/linear.h"
#include "models/transformer/initialization.h"

namespace tilewave {

Vocabulary::Vocabulary(Parameters& parameters, const ModelConfig& config, std::int64_t padded_vocabulary)
    : vocabulary_(config.vocabulary),
      padded_vocabulary_(padded_vocabulary),
      scale_(config.positions == Positions::sinusoidal ? std::sqrt(static_cast<double>(config.d_model)) : 1.0) {
  const auto matrix = [&](const char* name) {
    return parameters.add({.name = name,
                           .shape = {vocabulary_, config.d_model},
                           .padded_rows = padded_vocabulary_,
                           .initialization = {.deviation = embedding_deviation(config)}});
  };
  tokens_ = matrix("embedding.token.weight");
  if (config.positions == Positions::learned) {
    positions_ = parameters.add({.name = "embedding.position.weight",
                                 .shape = {config.max_positions, config.d_model},
                                 .initialization = {.deviation = kPositionDeviation}});
  } else if (config.positions == Positions::sinusoidal) {
    Context& context = parameters.context();
    positions_ = Variable(sinusoidal_positions(context, config.max_positions, config.d_model, context.precision().compute));
  }
  projection_ = config.tied ? tokens_ : matrix("projection.weight");
}

Variable Vocabulary::embed(Context& context, const Tensor& ids, const Tensor& position_ids, double rate) const {
  const LayerScope scope(context, "embedding");
  const Variable x =  // [tokens, d_model]
      embedding(context, {.table = tokens_, .positions = positions_, .ids = ids, .position_ids = position_ids, .scale = scale_});
  return dropout(context, {.x = x, .probability = rate});
}

Variable Vocabulary::logits(Context& context, const Variable& x) const {
  const LayerScope scope(context, "projection");
  return linear(context, {.x = x, .weight = projection_});
}

}  // namespace tilewave
