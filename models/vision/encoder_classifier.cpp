// The forward pass; the backward pass is the framework's. Of patches as wide as tall the stem's convolution is a GEMM over rows that im2col
// copies once, a patch a row.
#include "models/vision/encoder_classifier.h"

#include <cmath>
#include <string>

#include "framework/ops/add.h"
#include "framework/ops/convolution.h"
#include "framework/ops/dropout.h"
#include "framework/ops/embedding.h"
#include "framework/ops/pool.h"
#include "models/transformer/initialization.h"

namespace tilewave {
namespace {

ClassifierShape checked(const ClassifierShape& shape) {
  const auto& [picture, patch, classes] = shape;
  TW_CHECK(patch > 0 && picture.channels > 0 && picture.height >= patch && picture.width >= patch && picture.height % patch == 0 &&
               picture.width % patch == 0,
           "pictures of ", picture.height, " x ", picture.width, " pixels of ", picture.channels, " channels are not cut into patches of ",
           patch, " x ", patch, "; choose a patch that divides both sides.");
  TW_CHECK(classes > 1, "a picture of ", classes, " classes has nothing to learn; there must be two at least.");
  return shape;
}

std::int64_t values_of_patch(const ClassifierShape& shape) { return shape.patch * shape.patch * shape.picture.channels; }

}  // namespace

EncoderClassifier::EncoderClassifier(Parameters& parameters, const ModelConfig& config, const ClassifierShape& shape)
    : shape_(checked(shape)),
      stem_(parameters, {.name = "stem",
                         .in = values_of_patch(shape),
                         .out = config.d_model,
                         .deviation = 1.0 / std::sqrt(static_cast<double>(values_of_patch(shape)))}),
      positions_(parameters.add(
          {.name = "position.weight", .shape = {shape.patches(), config.d_model}, .initialization = {.deviation = kPositionDeviation}})),
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
      head_(parameters, {.name = "head", .in = config.d_model, .out = shape.classes, .deviation = weight_deviation(config)}) {}

Variable EncoderClassifier::patches(Context& context, const PictureTensors& batch, double rate) const {
  const LayerScope scope(context, "stem");
  const std::int64_t patch = shape_.patch;
  const Variable rows = convolution(context, {.x = Variable(batch.pixels),  // [pictures x patches, d_model]
                                              .weight = stem_.weight(),
                                              .bias = stem_.bias(),
                                              .images = batch.images,
                                              .filter = {.height = patch, .width = patch, .stride_down = patch, .stride_across = patch}});
  const Variable positions =  // [pictures x patches, d_model]
      embedding(context, {.table = positions_, .positions = {}, .ids = batch.position_ids, .position_ids = batch.position_ids});
  return dropout(context, {.x = add(context, rows, positions), .probability = rate});
}

Variable EncoderClassifier::encode(Context& context, const PictureTensors& batch, const DropoutRates& rates) const {
  const LayerScope scope(context, "encoder");
  const SideScope side(context, TokenSide::source);
  const Segments segments = picture_segments(batch);
  Variable x = patches(context, batch, rates.hidden);
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    const LayerScope layer_scope(context, std::to_string(layer));
    x = layers_[layer].self_attention.forward(context, x, segments, Mask::none, rates);
    x = layers_[layer].ffn.forward(context, x, rates);
  }
  return norm_ ? norm_->forward(context, x) : x;
}

Variable EncoderClassifier::logits(Context& context, const PictureTensors& batch, const DropoutRates& rates) const {
  const Variable x = encode(context, batch, rates);  // [pictures x patches, d_model]
  const LayerScope scope(context, "head");
  const std::int64_t down = shape_.picture.height / shape_.patch, across = shape_.picture.width / shape_.patch;
  const Images patches{.count = batch.images.count, .channels = x.cols(), .height = down, .width = across};
  const Variable mean = average_pool(context, {.x = x,  // [pictures, d_model]
                                               .images = patches,
                                               .window = {.height = down, .width = across, .stride_down = down, .stride_across = across}});
  return head_.forward(context, mean);
}

}  // namespace tilewave
