// Convolutions over their filters' sizes.
#include "kernels/core/error.h"
#include "models/figures/convolution_points.h"
#include "models/figures/effects.h"
#include "models/figures/figures.h"
#include "models/figures/gemm_points.h"

namespace tilewave {
namespace {

constexpr std::string_view kOverInputs = "inputs", kOverOutputs = "outputs";
constexpr FigurePanel kConvolutionFilterPanels[] = {
    {.title = "(a) forward, over channels in", .quantity = Quantity::rate, .group = kOverInputs},
    {.title = "(b) activation gradient, over channels out", .quantity = Quantity::rate, .group = kOverOutputs}};

FigurePoints convolution_filter_points(const FigureSetting& setting) {
  FigurePoints figure;
  for (const std::string_view group : {kOverInputs, kOverOutputs}) {
    const bool inputs = group == kOverInputs;
    for (const std::int64_t channels : {16, 32, 64, 128, 256, 512}) {
      for (const std::int64_t filter : {1, 3, 5, 7}) {
        const ConvolutionLayer layer = {
            .images = 64, .edge = 28, .channels = inputs ? channels : 256, .outputs = inputs ? 256 : channels, .filter = filter};
        const ConvolutionPass pass = convolution_pass(layer, inputs ? GemmRole::forward : GemmRole::dgrad, setting);
        add_convolution(figure,
                        {.series = concat(filter, 'x', filter),
                         .x = static_cast<double>(inputs ? pass.images.channels : pass.outputs),
                         .group = std::string(group)},
                        pass);
      }
    }
  }
  figure.how = concat("64 images of 28x28, 256 channels on the other side, stride 1, padded to the same size.", toy_text(setting));
  return figure;
}

std::vector<Effect> convolution_filter_effects(const FigureRecords& records) {
  std::vector<Effect> effects;
  for (const std::string_view group : {kOverInputs, kOverOutputs}) {
    const std::vector<const FigureRecord*> points = records_of(records, "1x1", group), patches = records_of(records, "3x3", group);
    if (points.empty() || patches.empty()) continue;
    add_ratio(effects, {.what = concat("FLOP/s of a 3x3 filter over those of 1x1, ", std::llround(points.front()->x), " channels, ",
                                       group == kOverInputs ? "forward" : "activation gradient"),
                        .of = RatioOf::rates,
                        .over = patches.front(),
                        .under = points.front()});
  }
  return effects;
}

}  // namespace

const Figure kConvolutionFilterFigure = {
    .name = "convolution_filter",
    .references = "Deep Learning Performance, figures 22 and 23",
    .shows = "throughput of a convolution over channels, for filters of 1x1 to 7x7",
    .claim = "A larger filter makes longer dot products: C R S is the K of the forward GEMM, and K R S that of the activation gradient.",
    .axis = "channels",
    .scale = AxisScale::log,
    .panels = kConvolutionFilterPanels,
    .points = convolution_filter_points,
    .effects = convolution_filter_effects};

}  // namespace tilewave
