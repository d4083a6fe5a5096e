#include "models/figures/convolution_points.h"

#include <algorithm>

namespace tilewave {

std::string_view convolution_phase(GemmRole role) {
  constexpr std::string_view names[] = {"forward", "activation gradient", "weight gradient"};
  return names[static_cast<int>(role)];
}

ConvolutionPass convolution_pass(const ConvolutionLayer& layer, GemmRole role, const FigureSetting& setting) {
  const auto sized = [&](std::int64_t size) { return setting.toy() && size >= 16 ? size / 16 : size; };
  const std::int64_t padding = layer.dilation * (layer.filter - 1) / 2;
  return {.images = {.count = sized(layer.images), .channels = sized(layer.channels), .height = layer.edge, .width = layer.edge},
          .filter = {.height = layer.filter,
                     .width = layer.filter,
                     .stride_down = layer.stride,
                     .stride_across = layer.stride,
                     .padding_down = padding,
                     .padding_across = padding,
                     .dilation_down = layer.dilation,
                     .dilation_across = layer.dilation},
          .outputs = sized(layer.outputs),
          .role = role};
}

void add_convolution(FigurePoints& figure, const ConvolutionPlace& place, const ConvolutionPass& pass) {
  FigurePoint& point = figure.points.emplace_back();
  point.series = place.series;
  point.x = place.x;
  point.group = place.group;
  point.label = place.label;
  point.convolution = pass;
}

}  // namespace tilewave
