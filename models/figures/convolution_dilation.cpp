// Convolutions over their dilations.
#include "kernels/core/error.h"
#include "models/figures/convolution_points.h"
#include "models/figures/effects.h"
#include "models/figures/figures.h"
#include "models/figures/gemm_points.h"

namespace tilewave {
namespace {

constexpr FigurePanel kDilationPanels[] = {{.title = "(a) forward", .quantity = Quantity::time, .group = "forward"},
                                           {.title = "(b) activation gradient", .quantity = Quantity::time, .group = "activation gradient"},
                                           {.title = "(c) weight gradient", .quantity = Quantity::time, .group = "weight gradient"}};

FigurePoints convolution_dilation_points(const FigureSetting& setting) {
  FigurePoints figure;
  for (const std::int64_t images : {16, 32, 64, 128}) {
    for (const GemmRole role : kConvolutionPhases) {
      for (const std::int64_t dilation : {1, 2}) {
        const ConvolutionPass pass =
            convolution_pass({.images = images, .edge = 28, .channels = 256, .outputs = 256, .dilation = dilation}, role, setting);
        add_convolution(figure,
                        {.series = concat("dilation ", dilation),
                         .x = static_cast<double>(pass.images.count),
                         .group = std::string(convolution_phase(role))},
                        pass);
      }
    }
  }
  figure.how = concat("16 to 128 images of 28x28, 256 -> 256 channels, a 3x3 filter, padded to the same size.", toy_text(setting));
  return figure;
}

std::vector<Effect> convolution_dilation_effects(const FigureRecords& records) {
  std::vector<Effect> effects;
  for (const GemmRole role : kConvolutionPhases) {
    const auto last_of = [&](int dilation) -> const FigureRecord* {
      const std::vector<const FigureRecord*> all = records_of(records, concat("dilation ", dilation), convolution_phase(role));
      return all.empty() ? nullptr : all.back();
    };
    add_ratio(effects,
              {.what = concat("time at dilation 2 over that at 1, ", convolution_phase(role)), .over = last_of(2), .under = last_of(1)});
  }
  return effects;
}

}  // namespace

const Figure kConvolutionDilationFigure = {
    .name = "convolution_dilation",
    .references = "Deep Learning Performance, figures 30 and 31",
    .shows = "throughput and time of a convolution with dilation 1 and 2",
    .claim = "Dilation moves the pixels that a filter looks at and changes no size of its GEMM, so that time stays as it is.",
    .axis = "images",
    .scale = AxisScale::log,
    .panels = kDilationPanels,
    .points = convolution_dilation_points,
    .effects = convolution_dilation_effects};

}  // namespace tilewave
