// Filters at the edges of what there is, for tests of convolutions on a CPU and on a GPU, and the convolution's definition by loops.
#pragma once

#include <optional>

#include "kernels/core/convolution.h"
#include "tests/kernels/ops/image_matrix.h"

namespace tilewave::testing_support {

struct ConvolutionCase {
  Images images;
  ConvolutionFilter filter;
};

inline std::string text_of(const ConvolutionCase& c) {
  return concat(c.images.count, " x ", c.images.height, " x ", c.images.width, " x ", c.images.channels, ", filter ", c.filter.height,
                " x ", c.filter.width, ", strides ", c.filter.stride_down, " and ", c.filter.stride_across, ", padding ",
                c.filter.padding_down, " and ", c.filter.padding_across, ", dilation ", c.filter.dilation_down, " and ",
                c.filter.dilation_across);
}

// One pixel and one channel; strides, paddings and dilations that differ by axis; odd sizes; three channels and more than packs; 1x1;
// patches, also of rows and of whole images; a filter that is mostly in the padding; pixels that no output meets.
inline std::vector<ConvolutionCase> convolution_cases() {
  const auto images = [](std::int64_t count, std::int64_t height, std::int64_t width, std::int64_t channels) {
    return Images{.count = count, .channels = channels, .height = height, .width = width};
  };
  return {
      {images(1, 1, 1, 1), {.height = 1, .width = 1}},
      {images(2, 4, 5, 3), {}},
      {images(2, 7, 5, 3), {.stride_down = 2, .stride_across = 2, .padding_down = 1, .padding_across = 1}},
      {images(1, 9, 8, 8), {.height = 5, .width = 3, .padding_down = 2, .padding_across = 1}},
      {images(2, 9, 11, 5), {.stride_down = 1, .stride_across = 3, .padding_down = 0, .padding_across = 2, .dilation_down = 2}},
      {images(1, 8, 13, 16), {.height = 2, .width = 4, .stride_down = 3, .padding_down = 1, .dilation_down = 3, .dilation_across = 2}},
      {images(3, 6, 4, 17), {.height = 1, .width = 1}},
      {images(2, 7, 6, 4), {.height = 1, .width = 1, .stride_down = 2, .stride_across = 3}},
      {images(2, 8, 12, 3), {.height = 4, .width = 4, .stride_down = 4, .stride_across = 4}},
      {images(2, 4, 6, 3), {.height = 1, .width = 3, .stride_down = 1, .stride_across = 3}},
      {images(2, 6, 4, 2), {.height = 3, .width = 4, .stride_down = 3, .stride_across = 1}},
      {images(2, 7, 9, 3), {.height = 3, .width = 3, .stride_down = 3, .stride_across = 4}},
      {images(1, 2, 1, 3), {.height = 7, .width = 7, .stride_down = 2, .padding_down = 3, .padding_across = 5}},
      {images(2, 5, 5, 24), {.padding_down = 1, .padding_across = 1}},
  };
}

// The pixel, counted over all images, that element `tap` of the filter meets at output `row`; none in the padding.
inline std::optional<std::int64_t> pixel_of(const Images& images, const ConvolutionFilter& f, std::int64_t row, std::int64_t tap) {
  const Images outputs = convolved(images, f, 1);
  const std::int64_t q = row % outputs.width, p = row / outputs.width % outputs.height, image = row / outputs.pixels();
  const std::int64_t h = p * f.stride_down - f.padding_down + tap / f.width * f.dilation_down,
                     w = q * f.stride_across - f.padding_across + tap % f.width * f.dilation_across;
  if (h < 0 || h >= images.height || w < 0 || w >= images.width) return {};
  return (image * images.height + h) * images.width + w;
}

}  // namespace tilewave::testing_support
