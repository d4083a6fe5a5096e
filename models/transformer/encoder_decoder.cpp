// Forward passes of the encoder-decoder; the backward pass is the framework's.
#include "models/transformer/encoder_decoder.h"

#include <string>

#include "models/transformer/initialization.h"

namespace tilewave {

EncoderDecoder::EncoderDecoder(Parameters& parameters, const ModelConfig& config, const ModelData& data)
    : vocabulary_(parameters, config, data.padded_vocabulary) {
  if (config.stem != Stem::none) {
    TW_CHECK(data.picture, "an encoder with a stem is made for pictures of one shape; say which.");
    pictures_.emplace(parameters, config, StemShape{.picture = data.picture->shape, .patch = config.patch});
  }
  const Tensor rotations = rotations_of(parameters.context(), config);
  for (std::int64_t layer = 0; layer < config.encoder_layers; ++layer) {
    const std::string name = "encoder." + std::to_string(layer);
    encoder_.push_back({.self_attention = SelfAttention(parameters, name + ".self_attention", config, rotations),
                        .ffn = FeedForward(parameters, name + ".ffn", config)});
  }
  if (config.norm == Norm::pre) encoder_norm_.emplace(parameters, norm_spec(config, "encoder.norm"));
  for (std::int64_t layer = 0; layer < config.decoder_layers; ++layer) {
    const std::string name = "decoder." + std::to_string(layer);
    decoder_.push_back({.self_attention = SelfAttention(parameters, name + ".self_attention", config, rotations),
                        .cross_attention = CrossAttention(parameters, name + ".cross_attention", config),
                        .ffn = FeedForward(parameters, name + ".ffn", config)});
  }
  if (config.norm == Norm::pre) decoder_norm_.emplace(parameters, norm_spec(config, "decoder.norm"));
}

Variable EncoderDecoder::encode(Context& context, const BatchTensors& batch, std::int64_t sequence, const ForwardOptions& options) const {
  const LayerScope scope(context, "encoder");
  const DropoutRates& rates = options.rates;
  const SideScope side(context, TokenSide::source);
  const Segments segments = source_segments(batch, sequence);
  Variable x =
      pictures_ ? pictures_->embed(context, batch.pixels.value(), batch.source_positions, {.dropout = rates.hidden, .mode = options.mode})
                : vocabulary_.embed(context, batch.source_ids, batch.source_positions, rates.hidden);  // [source tokens, d_model]
  for (std::size_t layer = 0; layer < encoder_.size(); ++layer) {
    const LayerScope layer_scope(context, std::to_string(layer));
    x = encoder_[layer].self_attention.forward(context, x, segments, Mask::none, rates);
    x = encoder_[layer].ffn.forward(context, x, rates);
  }
  return encoder_norm_ ? encoder_norm_->forward(context, x) : x;
}

Variable EncoderDecoder::logits(Context& context, const BatchTensors& batch, std::int64_t sequence, const ForwardOptions& options) const {
  const Variable memory = encode(context, batch, sequence, options);  // [source tokens, d_model]
  const DropoutRates& rates = options.rates;
  const LayerScope scope(context, "decoder");
  const Segments own = target_segments(batch, sequence), cross = cross_segments(batch, sequence);
  Variable x = vocabulary_.embed(context, batch.target_in, batch.target_positions, rates.hidden);  // [target tokens, d_model]
  for (std::size_t layer = 0; layer < decoder_.size(); ++layer) {
    const LayerScope layer_scope(context, std::to_string(layer));
    x = decoder_[layer].self_attention.forward(context, x, own, Mask::causal, rates);
    x = decoder_[layer].cross_attention.forward(context, x, memory, cross, rates);
    x = decoder_[layer].ffn.forward(context, x, rates);
  }
  if (decoder_norm_) x = decoder_norm_->forward(context, x);
  return vocabulary_.logits(context, x);  // [target tokens, V_padded]
}

std::vector<Variable> EncoderDecoder::cross_keys_and_values(Context& context, const Variable& memory) const {
  std::vector<Variable> cross;
  for (const DecoderLayer& layer : decoder_) cross.push_back(layer.cross_attention.keys_and_values(context, memory));
  return cross;
}

Variable EncoderDecoder::decode(Context& context, const Tensor& ids, const DecodeStep& step, const std::vector<KeyValueCache>& caches,
                                const std::vector<Variable>& cross) const {
  Variable x = vocabulary_.embed(context, ids, step.position_ids, 0.0);  // [tokens, d_model]
  for (std::size_t layer = 0; layer < decoder_.size(); ++layer) {
    x = decoder_[layer].self_attention.decode(context, x, step, caches[layer]);
    x = decoder_[layer].cross_attention.attend(context, x, cross[layer], {.rows = step.cross_segments, .sums = {}, .position_ids = {}}, {});
    x = decoder_[layer].ffn.forward(context, x, {});
  }
  if (decoder_norm_) x = decoder_norm_->forward(context, x);
  return vocabulary_.logits(context, x);  // [tokens, V_padded]
}

}  // namespace tilewave
