// Convolutions over images and their sizes.
#include "kernels/core/error.h"
#include "models/figures/convolution_points.h"
#include "models/figures/effects.h"
#include "models/figures/figures.h"
#include "models/figures/gemm_points.h"

namespace tilewave {
namespace {

constexpr std::string_view kOfPixels = "pixels", kOfALargeLayer = "large";
constexpr FigurePanel kConvolutionBatchPanels[] = {
    {.title = "(a) 3x3, 256 channels to 256, forward", .quantity = Quantity::rate, .group = kOfPixels},
    {.title = "(b) 5x5, 1024 channels to 1024 at 32x32", .quantity = Quantity::rate, .group = kOfALargeLayer}};

FigurePoints convolution_batch_points(const FigureSetting& setting) {
  FigurePoints figure;
  constexpr std::int64_t kMaxPixels = 65536;  // pixels
  for (std::int64_t pixels = 1024; pixels <= kMaxPixels; pixels *= 2) {
    for (const std::int64_t edge : {8, 16, 32}) {
      const ConvolutionLayer layer = {.images = pixels / (edge * edge), .edge = edge, .channels = 256, .outputs = 256};
      const ConvolutionPass pass = convolution_pass(layer, GemmRole::forward, setting);
      add_convolution(figure,
                      {.series = concat(edge, 'x', edge), .x = static_cast<double>(pass.result().rows()), .group = std::string(kOfPixels)},
                      pass);
    }
  }
  for (const std::int64_t images : {1, 2, 4, 8, 16, 32, 64}) {
    if (setting.toy() && images > 4) break;
    for (const GemmRole role : kConvolutionPhases) {
      const ConvolutionPass pass =
          convolution_pass({.images = images, .edge = 32, .channels = 1024, .outputs = 1024, .filter = 5}, role, setting);
      add_convolution(figure,
                      {.series = std::string(convolution_phase(role)),
                       .x = static_cast<double>(pass.result().rows()),
                       .group = std::string(kOfALargeLayer)},
                      pass);
    }
  }
  figure.how = concat("Images of 8x8 to 32x32 pixels, as many as make 1024 to ", kMaxPixels,
                      " pixels in all; and the guide's large layer of 1 to 64 images.", toy_text(setting));
  return figure;
}

std::vector<Effect> convolution_batch_effects(const FigureRecords& records) {
  std::vector<Effect> effects = last_over_first(records, {.behind = " pixels"});
  const std::vector<const FigureRecord*> small = records_of(records, "8x8", kOfPixels), large = records_of(records, "32x32", kOfPixels);
  if (small.empty() || large.empty()) return effects;
  add_ratio(effects,
            {.what = concat("time of as many pixels in images of 8x8 over that in images of 32x32, ", std::llround(small.back()->x)),
             .over = small.back(),
             .under = large.back()});
  return effects;
}

}  // namespace

const Figure kConvolutionBatchFigure = {
    .name = "convolution_batch",
    .references = "Deep Learning Performance, figures 21 and 29",
    .shows = "throughput of a convolution over the pixels of all images, whatever the size of an image; and of a large one",
    .claim = "What counts is the product of batch, height and width of the outputs: throughput grows with it, less and less.",
    .axis = "pixels",
    .scale = AxisScale::log,
    .panels = kConvolutionBatchPanels,
    .points = convolution_batch_points,
    .effects = convolution_batch_effects};

}  // namespace tilewave
