// Convolutions over their channels in: a first layer's few, and a later one's many.
#include "kernels/core/error.h"
#include "models/figures/convolution_points.h"
#include "models/figures/effects.h"
#include "models/figures/figures.h"
#include "models/figures/gemm_points.h"

namespace tilewave {
namespace {

constexpr std::string_view kFirstLayer = "first layer", kLaterLayer = "later";
constexpr FigurePanel kChannelsInPanels[] = {
    {.title = "(a) a first layer, 7x7 at stride 2, forward", .quantity = Quantity::time, .group = kFirstLayer},
    {.title = "(b) 3x3 at 28x28, activation gradient", .quantity = Quantity::rate, .group = kLaterLayer}};

FigurePoints channels_in_points(const FigureSetting& setting) {
  FigurePoints figure;
  for (const std::int64_t channels : {1, 2, 3, 4, 5, 6, 7, 8, 12, 16}) {
    const ConvolutionPass pass =
        convolution_pass({.images = 64, .edge = setting.toy() ? 56 : 224, .channels = channels, .outputs = 64, .filter = 7, .stride = 2},
                         GemmRole::forward, setting);
    const auto x = static_cast<double>(pass.images.channels);
    if (!figure.points.empty() && figure.points.back().x >= x) continue;  // toys of two sizes may be one
    add_convolution(figure, {.series = std::string(convolution_phase(GemmRole::forward)), .x = x, .group = std::string(kFirstLayer)}, pass);
  }
  for (const std::int64_t channels : {8, 16, 32, 64, 128, 256, 512, 1024}) {
    if (setting.toy() && channels < 16) continue;
    const ConvolutionPass pass =
        convolution_pass({.images = 64, .edge = 28, .channels = channels, .outputs = 256}, GemmRole::dgrad, setting);
    add_convolution(figure,
                    {.series = std::string(convolution_phase(GemmRole::dgrad)),
                     .x = static_cast<double>(pass.images.channels),
                     .group = std::string(kLaterLayer)},
                    pass);
  }
  figure.how = concat("64 images of 224x224 and 64 channels out; 64 images of 28x28 and 256 channels out.", toy_text(setting));
  return figure;
}

std::vector<Effect> channels_in_effects(const FigureRecords& records) {
  std::vector<Effect> effects;
  const std::string forward(convolution_phase(GemmRole::forward));
  const FigureRecord* const three = find_record(records, {.series = forward, .x = 3, .group = std::string(kFirstLayer)});
  for (const std::int64_t padded : {4, 8}) {
    add_ratio(effects,
              {.what = concat("time of 3 channels over that of ", padded, ", a first layer"),
               .over = three,
               .under = find_record(records, {.series = forward, .x = static_cast<double>(padded), .group = std::string(kFirstLayer)})});
  }
  return effects;
}

}  // namespace

const Figure kConvolutionChannelsInFigure = {
    .name = "convolution_channels_in",
    .references = "Deep Learning Performance, figures 24 and 26",
    .shows = "a convolution over its channels in: 3, 4 and 8 of a first layer, and many of a later one",
    .claim =
        "Channels in multiples of 8 use Tensor Cores; for a first layer of 3 channels padding to 4 is enough where kernels know it. The "
        "activation gradient is faster with more of them, less and less.",
    .axis = "channels in",
    .scale = AxisScale::log,
    .panels = kChannelsInPanels,
    .points = channels_in_points,
    .effects = channels_in_effects};

}  // namespace tilewave
