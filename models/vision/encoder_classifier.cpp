// The forward pass; the backward pass is the framework's.
#include "models/vision/encoder_classifier.h"

#include <string>

#include "models/transformer/initialization.h"

namespace tilewave {
namespace {

ClassifierShape checked(const ClassifierShape& shape) {
  TW_CHECK(shape.classes > 1, "a picture of ", shape.classes, " classes has nothing to learn; there must be two at least.");
  return shape;
}

}  // namespace

EncoderClassifier::EncoderClassifier(Parameters& parameters, const ModelConfig& config, const ClassifierShape& shape)
    : shape_(checked(shape)),
      embedding_(parameters, config, {.picture = shape.picture, .patch = shape.patch}),
      layers_([&] {
        std::vector<Layer> layers;
        for (std::int64_t layer = 0; layer < config.encoder_layers; ++layer) {
          const std::string name = "encoder." + std::to_string(layer);
          layers.push_back({.self_attention = SelfAttention(parameters, name + ".self_attention", config, Tensor()),
                            .ffn = FeedForward(parameters, name + ".ffn", config)});
        }
        return layers;
      }()),
      norm_(config.norm == Norm::pre ? std::optional(NormLayer(parameters, norm_spec(config, "encoder.norm"))) : std::nullopt),
      head_(parameters, config, shape) {}

Variable EncoderClassifier::logits(Context& context, const PictureTensors& batch, const DropoutRates& rates, BatchNormMode mode) const {
  const Variable x = [&] {  // [pictures x patches, d_model]
    const LayerScope scope(context, "encoder");
    const SideScope side(context, TokenSide::source);
    const Segments segments = picture_segments(batch);
    Variable rows = embedding_.embed(context, batch.pixels, batch.position_ids, {.dropout = rates.hidden, .mode = mode});
    for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
      const LayerScope layer_scope(context, std::to_string(layer));
      rows = layers_[layer].self_attention.forward(context, rows, segments, Mask::none, rates);
      rows = layers_[layer].ffn.forward(context, rows, rates);
    }
    return norm_ ? norm_->forward(context, rows) : rows;
  }();
  const LayerScope scope(context, "head");
  return head_.logits(context, x);
}

}  // namespace tilewave
