// The model that a recipe asks for: its parameters and one of the architectures.
#pragma once

#include <variant>

#include "models/transformer/decoder_only.h"
#include "models/transformer/encoder_decoder.h"

namespace tilewave {

class Transformer {
 public:
  // Allocates and initialises the parameters in the context's precision.
  Transformer(Context& context, const ModelConfig& config, const ModelData& data, std::uint64_t seed);

  Variable logits(const BatchTensors& batch, std::int64_t sequence, const ForwardOptions& options) const;  // [target tokens, V_padded]

  Context& context() { return parameters_.context(); }
  Parameters& parameters() { return parameters_; }
  const Parameters& parameters() const { return parameters_; }
  const ModelConfig& config() const { return config_; }
  const ModelData& data() const { return data_; }
  const Vocabulary& vocabulary() const;
  const std::variant<EncoderDecoder, DecoderOnly>& architecture() const { return architecture_; }

 private:
  ModelConfig config_;
  ModelData data_;
  mutable Parameters parameters_;
  std::variant<EncoderDecoder, DecoderOnly> architecture_;
};

}  // namespace tilewave
