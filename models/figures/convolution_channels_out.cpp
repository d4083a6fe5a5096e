// Convolutions over their channels out.
#include "kernels/core/error.h"
#include "models/figures/convolution_points.h"
#include "models/figures/effects.h"
#include "models/figures/figures.h"
#include "models/figures/gemm_points.h"

namespace tilewave {
namespace {

FigurePoints channels_out_points(const FigureSetting& setting) {
  FigurePoints figure;
  for (const std::int64_t outputs : {8, 16, 32, 64, 128, 256, 512, 1024}) {
    if (setting.toy() && outputs < 16) continue;
    for (const GemmRole role : {GemmRole::forward, GemmRole::wgrad}) {
      const ConvolutionPass pass = convolution_pass({.images = 64, .edge = 28, .channels = 256, .outputs = outputs}, role, setting);
      add_convolution(figure, {.series = std::string(convolution_phase(role)), .x = static_cast<double>(pass.outputs)}, pass);
    }
  }
  figure.how = concat("64 images of 28x28, 256 channels in, a 3x3 filter.", toy_text(setting));
  return figure;
}

}  // namespace

const Figure kConvolutionChannelsOutFigure = {
    .name = "convolution_channels_out",
    .references = "Deep Learning Performance, figure 25",
    .shows = "throughput and time of a convolution over its channels out, forward and weight gradient",
    .claim = "Channels out are the N of both GEMMs: few of them leave most of a tile empty, and beyond a tile's width more gain little.",
    .axis = "channels out",
    .scale = AxisScale::log,
    .panels = kConvolutionPanels,
    .points = channels_out_points,
    .effects = [](const FigureRecords& records) { return last_over_first(records, {.behind = " channels out"}); }};

}  // namespace tilewave
