// The choice of architecture, once.
#include "models/transformer/transformer.h"

namespace tilewave {
namespace {

std::variant<EncoderDecoder, DecoderOnly> make(Parameters& parameters, const ModelConfig& config, const ModelData& data) {
  if (config.architecture == Architecture::encoder_decoder) return EncoderDecoder(parameters, config, data);
  return DecoderOnly(parameters, config, data.padded_vocabulary);
}

}  // namespace

Transformer::Transformer(Context& context, const ModelConfig& config, const ModelData& data, std::uint64_t seed)
    : config_(config),
      data_(data),
      parameters_(context, seed, context.ranks().alone() ? ParameterStorage::separate : ParameterStorage::by_layer),
      architecture_(make(parameters_, config, data)) {
  parameters_.place();
}

Variable Transformer::logits(const BatchTensors& batch, std::int64_t sequence, const ForwardOptions& options) const {
  Context& context = parameters_.context();
  if (const auto* decoder = std::get_if<DecoderOnly>(&architecture_)) return decoder->logits(context, batch, sequence, options.rates);
  return std::get<EncoderDecoder>(architecture_).logits(context, batch, sequence, options);
}

const Vocabulary& Transformer::vocabulary() const {
  return std::visit([](const auto& model) -> const Vocabulary& { return model.vocabulary(); }, architecture_);
}

}  // namespace tilewave
