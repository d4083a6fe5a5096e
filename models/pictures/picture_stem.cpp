// The stems' forward passes; the backward pass is the framework's. A convolution is a GEMM over rows that im2col copies once.
#include "models/pictures/picture_stem.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include "framework/ops/activation.h"
#include "framework/ops/add.h"
#include "framework/ops/convolution.h"
#include "framework/ops/dropout.h"
#include "framework/ops/embedding.h"
#include "framework/ops/pool.h"
#include "kernels/gemm/tiling.h"

namespace tilewave {
namespace {

constexpr ConvolutionFilter kHalving = {
    .height = 3, .width = 3, .stride_down = 2, .stride_across = 2, .padding_down = 1, .padding_across = 1};
constexpr PoolWindow kPooling = {.height = 3, .width = 3, .stride_down = 2, .stride_across = 2, .padding_down = 1, .padding_across = 1};

// Of weights before a linear layer, so that its outputs have the variance of its inputs; `gain` makes up for what a ReLU takes.
double deviation(std::int64_t inputs, double gain) { return std::sqrt(gain / static_cast<double>(inputs)); }

std::int64_t halvings_of(std::int64_t patch) { return std::bit_width(static_cast<std::uint64_t>(patch)) - 1; }
std::int64_t convolutions_of(const ModelConfig& config, std::int64_t patch) { return halvings_of(patch) - (config.stem_pool ? 1 : 0); }

// Of the last convolution half of d_model, of the one before it half of that, a multiple of 8 each; `left` are still to come.
std::int64_t channels_of(const ModelConfig& config, std::int64_t left) {
  return round_up(std::max<std::int64_t>(1, config.d_model >> (left + 1)), 8);
}

}  // namespace

PatchStem::PatchStem(Parameters& parameters, const ModelConfig& config, const StemShape& shape)
    : patch_(shape.patch), linear_([&] {
        const std::int64_t inputs = patch_ * patch_ * shape.picture.channels;
        return Linear(parameters, {.name = "stem", .in = inputs, .out = config.d_model, .deviation = deviation(inputs, 1.0)});
      }()) {}

Variable PatchStem::rows(Context& context, const Pixels& pixels, BatchNormMode) const {
  return convolution(context, {.x = Variable(pixels.values),
                               .weight = linear_.weight(),
                               .bias = linear_.bias(),
                               .images = pixels.images,
                               .filter = {.height = patch_, .width = patch_, .stride_down = patch_, .stride_across = patch_}});
}

ConvolutionStem::ConvolutionStem(Parameters& parameters, const ModelConfig& config, const StemShape& shape)
    : halvings_([&] {
        std::vector<Halving> halvings;
        std::int64_t before = shape.picture.channels;
        const std::int64_t count = convolutions_of(config, shape.patch);
        for (std::int64_t halving = 0; halving < count; ++halving) {
          const std::string name = "stem." + std::to_string(halving);
          const std::int64_t channels = channels_of(config, count - 1 - halving), inputs = kHalving.taps() * before;
          const Variable weight = parameters.add(
              {.name = name + ".weight", .shape = {channels, inputs}, .initialization = {.deviation = deviation(inputs, 2.0)}});
          const auto norm = [&]() -> std::variant<BatchNormLayer, NormLayer> {
            if (config.stem_norm == StemNorm::batch_norm) {
              return BatchNormLayer(parameters, {.name = name + ".norm", .channels = channels, .epsilon = config.epsilon});
            }
            return NormLayer(parameters, {.name = name + ".norm", .d = channels, .epsilon = config.epsilon});
          };
          halvings.push_back({.weight = weight, .norm = norm()});
          before = channels;
        }
        return halvings;
      }()),
      pools_(config.stem_pool),
      projection_(parameters, {.name = "stem.projection",
                               .in = channels_of(config, 0),
                               .out = config.d_model,
                               .deviation = deviation(channels_of(config, 0), 1.0)}) {}

Variable ConvolutionStem::rows(Context& context, const Pixels& pixels, BatchNormMode mode) const {
  Variable x = Variable(pixels.values);  // [N H W, C]
  Images images = pixels.images;
  for (std::size_t halving = 0; halving < halvings_.size(); ++halving) {
    const LayerScope scope(context, std::to_string(halving));
    const auto& [weight, norm] = halvings_[halving];
    x = convolution(context, {.x = x, .weight = weight, .bias = {}, .images = images, .filter = kHalving});
    images = convolved(images, kHalving, weight.rows());
    if (const auto* batch_norm = std::get_if<BatchNormLayer>(&norm)) {
      x = batch_norm->forward(context, x, mode);
    } else {
      x = std::get<NormLayer>(norm).forward(context, x);
    }
    x = activation(context, x, Activation::relu);
  }
  if (pools_) x = max_pool(context, {.x = x, .images = images, .window = kPooling});
  const LayerScope scope(context, "projection");
  return projection_.forward(context, x);
}

PictureStem make_stem(Parameters& parameters, const ModelConfig& config, const StemShape& shape) {
  TW_CHECK(config.stem != Stem::none, "a model that sees pictures has a stem; set model.stem to \"patch\" or \"convolution\".");
  if (config.stem == Stem::patch) return PatchStem(parameters, config, shape);
  TW_CHECK(std::has_single_bit(static_cast<std::uint64_t>(shape.patch)) && convolutions_of(config, shape.patch) > 0, "patches of ",
           shape.patch, " pixels are not what halving sides makes", config.stem_pool ? ", the last time by pooling" : "", ".");
  return ConvolutionStem(parameters, config, shape);
}

namespace {

constexpr double kDeviationOfPlaces = 0.02;

StemShape checked(const StemShape& shape) {
  const auto& [picture, patch] = shape;
  TW_CHECK(patch > 0 && picture.channels > 0 && picture.height >= patch && picture.width >= patch && picture.height % patch == 0 &&
               picture.width % patch == 0,
           "pictures of ", picture.height, " x ", picture.width, " pixels of ", picture.channels, " channels are not cut into patches of ",
           patch, " x ", patch, "; choose a patch that divides both sides.");
  return shape;
}

}  // namespace

PictureEmbedding::PictureEmbedding(Parameters& parameters, const ModelConfig& config, const StemShape& shape)
    : stem_(make_stem(parameters, config, checked(shape))),
      positions_(parameters.add(
          {.name = "position.weight", .shape = {shape.patches(), config.d_model}, .initialization = {.deviation = kDeviationOfPlaces}})) {}

Variable PictureEmbedding::embed(Context& context, const Pixels& pixels, const Tensor& position_ids, const Options& options) const {
  const LayerScope scope(context, "stem");
  const Variable rows = std::visit([&](const auto& stem) { return stem.rows(context, pixels, options.mode); }, stem_);
  const Variable positions =  // [pictures x patches, d_model]
      embedding(context, {.table = positions_, .positions = {}, .ids = position_ids, .position_ids = position_ids});
  return dropout(context, {.x = add(context, rows, positions), .probability = options.dropout});
}

}  // namespace tilewave
