// Images as matrices, in the two orders that frameworks have. H W pixels of C channels, N images:
//   nhwc  a row is a pixel, its columns the channels                [N H W, C]
//   nchw  a row is a channel of an image, its columns its pixels    [N C, H W]
#pragma once

#include <cstdint>
#include <string_view>

namespace tilewave {

enum class ImageLayout : std::uint8_t { nhwc, nchw };

constexpr std::string_view name_of(ImageLayout layout) { return layout == ImageLayout::nhwc ? "nhwc" : "nchw"; }

struct Images {
  std::int64_t count = 0, channels = 0, height = 0, width = 0;
  ImageLayout layout = ImageLayout::nhwc;

  constexpr std::int64_t pixels() const { return height * width; }
  constexpr std::int64_t rows() const { return count * (layout == ImageLayout::nhwc ? pixels() : channels); }
  constexpr std::int64_t cols() const { return layout == ImageLayout::nhwc ? channels : pixels(); }

  friend bool operator==(const Images&, const Images&) = default;
};

}  // namespace tilewave
