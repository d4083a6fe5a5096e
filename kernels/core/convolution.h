// Convolution of images in nhwc, as matrices and as GEMMs. A filter of R x S over C channels makes each of K outputs:
//   x [N H W, C]   weight [K, R S C]   y [N P Q, K]   y[n p q, k] = sum over r, s, c of x[n h w, c] weight[k, r s c]
//   with h = p stride - padding + r dilation, w likewise across; what lies outside of the image is zero
// The guide (Deep Learning Performance, table 4) has M x N x K of
//   forward N P Q x K x C R S   activation gradient N H W x C x K R S   weight gradient C R S x K x N P Q
// and its M is the pixels where problem.h's M is the outputs: of forward and activation gradient M and N change places there, of the
// weight gradient they stay. Products and tiles are the same; a tile of the guide's 256x128 is problem.h's 128x256.
#pragma once

#include <string>

#include "kernels/core/images.h"

namespace tilewave {

struct ConvolutionFilter {
  std::int64_t height = 3, width = 3;
  std::int64_t stride_down = 1, stride_across = 1;
  std::int64_t padding_down = 0, padding_across = 0;  // of zeros, on either side
  std::int64_t dilation_down = 1, dilation_across = 1;

  constexpr std::int64_t taps() const { return height * width; }
  // What the filter reaches over (Deep Learning Performance, section 7.4.1).
  constexpr std::int64_t effective_height() const { return dilation_down * (height - 1) + 1; }
  constexpr std::int64_t effective_width() const { return dilation_across * (width - 1) + 1; }

  friend bool operator==(const ConvolutionFilter&, const ConvolutionFilter&) = default;
};

// The images, of so many channels, that the filter makes of these; empty ones where it is larger than a padded image.
constexpr Images convolved(const Images& images, const ConvolutionFilter& filter, std::int64_t channels) {
  const auto places = [](std::int64_t size, std::int64_t reach, std::int64_t stride, std::int64_t padding) {
    return size + 2 * padding < reach ? 0 : (size + 2 * padding - reach) / stride + 1;
  };
  return {.count = images.count,
          .channels = channels,
          .height = places(images.height, filter.effective_height(), filter.stride_down, filter.padding_down),
          .width = places(images.width, filter.effective_width(), filter.stride_across, filter.padding_across),
          .layout = images.layout};
}

// Why these images cannot be convolved with that filter, a sentence's end; empty where they can.
std::string refuse_convolution(const Images& images, const ConvolutionFilter& filter);

// Whether the matrix [N P Q, R S C] of all that outputs are products of is x's own memory, taps() of its rows joined in one: each pixel
// once, those of an output side by side, one output behind the other. So it is of 1x1 filters at stride 1 without padding, at any pitch of
// x; in rows without gaps also of patches that are as wide as the image, or one pixel high. Else kernels/ops/im2col.h makes the matrix.
bool columns_in_place(std::int64_t pitch, const Images& images, const ConvolutionFilter& filter);

}  // namespace tilewave
