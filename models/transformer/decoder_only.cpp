// Forward passes of the decoder-only model; the backward pass is the framework's.
#include "models/transformer/decoder_only.h"

#include <string>

#include "models/transformer/initialization.h"

namespace tilewave {

DecoderOnly::DecoderOnly(Parameters& parameters, const ModelConfig& config, std::int64_t padded_vocabulary)
    : vocabulary_(parameters, config, padded_vocabulary) {
  const Tensor rotations = rotations_of(parameters.context(), config);
  for (std::int64_t layer = 0; layer < config.decoder_layers; ++layer) {
    const std::string name = "decoder." + std::to_string(layer);
    layers_.push_back({.self_attention = SelfAttention(parameters, name + ".self_attention", config, rotations),
                       .ffn = FeedForward(parameters, name + ".ffn", config)});
  }
  if (config.norm == Norm::pre) norm_.emplace(parameters, norm_spec(config, "decoder.norm"));
}

Variable DecoderOnly::logits(Context& context, const BatchTensors& batch, std::int64_t sequence, const DropoutRates& rates) const {
  const LayerScope scope(context, "decoder");
  const Segments segments = target_segments(batch, sequence);
  Variable x = vocabulary_.embed(context, batch.target_in, batch.target_positions, rates.hidden);  // [tokens, d_model]
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    const LayerScope layer_scope(context, std::to_string(layer));
    x = layers_[layer].self_attention.forward(context, x, segments, Mask::causal, rates);
    x = layers_[layer].ffn.forward(context, x, rates);
  }
  if (norm_) x = norm_->forward(context, x);
  return vocabulary_.logits(context, x);  // [tokens, V_padded]
}

Variable DecoderOnly::decode(Context& context, const Tensor& ids, const DecodeStep& step, const std::vector<KeyValueCache>& caches) const {
  Variable x = vocabulary_.embed(context, ids, step.position_ids, 0.0);  // [tokens, d_model]
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    x = layers_[layer].self_attention.decode(context, x, step, caches[layer]);
    x = layers_[layer].ffn.forward(context, x, {});
  }
  if (norm_) x = norm_->forward(context, x);
  return vocabulary_.logits(context, x);  // [tokens, V_padded]
}

}  // namespace tilewave
