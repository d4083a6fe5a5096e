// Convolutions over their strides.
#include "kernels/core/error.h"
#include "models/figures/convolution_points.h"
#include "models/figures/effects.h"
#include "models/figures/figures.h"
#include "models/figures/gemm_points.h"

namespace tilewave {
namespace {

// Outputs of 28x28 whatever the stride.
FigurePoints convolution_stride_points(const FigureSetting& setting) {
  FigurePoints figure;
  constexpr std::int64_t kOutputEdge = 28;
  for (const std::int64_t stride : {1, 2, 4}) {
    for (const GemmRole role : kConvolutionPhases) {
      const ConvolutionPass pass =
          convolution_pass({.images = 64, .edge = kOutputEdge * stride, .channels = 128, .outputs = 256, .stride = stride}, role, setting);
      add_convolution(figure, {.series = std::string(convolution_phase(role)), .x = static_cast<double>(stride)}, pass);
    }
  }
  figure.how = concat("64 images of 28, 56 and 112 pixels a side, 128 -> 256 channels, a 3x3 filter: outputs of 28x28.", toy_text(setting));
  return figure;
}

std::vector<Effect> convolution_stride_effects(const FigureRecords& records) {
  std::vector<Effect> effects;
  for (const std::string& series : series_of(records)) {
    add_ratio(effects, {.what = concat("time at stride 2 over that at stride 1 of as many outputs, ", series),
                        .over = find_record(records, {.series = series, .x = 2}),
                        .under = find_record(records, {.series = series, .x = 1})});
  }
  return effects;
}

}  // namespace

const Figure kConvolutionStrideFigure = {
    .name = "convolution_stride",
    .references = "Deep Learning Performance, figures 27 and 28",
    .shows = "throughput and time of a convolution over its stride, of as many outputs",
    .claim =
        "Forward and weight gradient depend on the outputs' size, whatever the stride. The activation gradient depends on the inputs'.",
    .axis = "stride",
    .panels = kConvolutionPanels,
    .points = convolution_stride_points,
    .effects = convolution_stride_effects};

}  // namespace tilewave
