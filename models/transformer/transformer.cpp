// The choice of architecture, once.
#include "models/transformer/transformer.h"

namespace tilewave {
namespace {

std::variant<EncoderDecoder, DecoderOnly> make(Parameters& parameters, const ModelConfig& config, std::int64_t padded_vocabulary) {
  if (config.architecture == Architecture::encoder_decoder) return EncoderDecoder(parameters, config, padded_vocabulary);
  return DecoderOnly(parameters, config, padded_vocabulary);
}

}  // namespace

Transformer::Transformer(Context& context, const ModelConfig& config, std::int64_t padded_vocabulary, std::uint64_t seed)
    : config_(config),
      parameters_(context, seed, context.ranks().alone() ? ParameterStorage::separate : ParameterStorage::by_layer),
      architecture_(make(parameters_, config, padded_vocabulary)) {
  parameters_.place();
}

Variable Transformer::logits(const BatchTensors& batch, std::int64_t sequence, const DropoutRates& rates) const {
  return std::visit([&](const auto& model) { return model.logits(parameters_.context(), batch, sequence, rates); }, architecture_);
}

const Vocabulary& Transformer::vocabulary() const {
  return std::visit([](const auto& model) -> const Vocabulary& { return model.vocabulary(); }, architecture_);
}

}  // namespace tilewave
