// Convolutions as figures ask for them.
#pragma once

#include <span>

#include "framework/measure/convolution_work.h"
#include "models/figures/figure.h"

namespace tilewave {

inline constexpr GemmRole kConvolutionPhases[] = {GemmRole::forward, GemmRole::dgrad, GemmRole::wgrad};
std::string_view convolution_phase(GemmRole role);  // "activation gradient"

struct ConvolutionLayer {
  std::int64_t images = 0, edge = 0, channels = 0, outputs = 0;  // images of edge x edge pixels
  std::int64_t filter = 3, stride = 1, dilation = 1;
};
// Padded on all sides so that outputs are as many as inputs at stride 1. On a CPU there are a sixteenth of the images and of channels.
ConvolutionPass convolution_pass(const ConvolutionLayer& layer, GemmRole role, const FigureSetting& setting);

struct ConvolutionPlace {
  std::string series;
  double x = 0.0;
  std::string group = {}, label = {};
};
void add_convolution(FigurePoints& figure, const ConvolutionPlace& place, const ConvolutionPass& pass);

inline constexpr FigurePanel kConvolutionPanels[] = {{.title = "throughput", .quantity = Quantity::rate},
                                                     {.title = "duration", .quantity = Quantity::time}};

}  // namespace tilewave
