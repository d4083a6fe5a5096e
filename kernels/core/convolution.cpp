#include "kernels/core/convolution.h"

#include <algorithm>
#include <initializer_list>

#include "kernels/core/error.h"
#include "kernels/core/saturating.h"

namespace tilewave {
namespace {

constexpr std::int64_t kMaxSize = std::int64_t{1} << 31;      // below which a size is
constexpr std::int64_t kMaxElements = std::int64_t{1} << 50;  // of the matrix [N P Q, R S C]

bool is_size(std::initializer_list<std::int64_t> sizes) {
  return std::ranges::all_of(sizes, [](std::int64_t size) { return size > 0 && size < kMaxSize; });
}

}  // namespace

std::string refuse_convolution(const Images& images, const ConvolutionFilter& f) {
  if (images.layout != ImageLayout::nhwc)
    return concat("images are in ", name_of(images.layout), "; convolution takes nhwc, a row a pixel: transpose them first.");
  if (!is_size({images.count, images.channels, images.height, images.width}))
    return concat("images are ", images.count, " of ", images.channels, " channels, ", images.height, " x ", images.width,
                  "; each must be at least 1 and below 2^31.");
  if (!is_size({f.height, f.width, f.stride_down, f.stride_across, f.dilation_down, f.dilation_across}))
    return concat("the filter is ", f.height, " x ", f.width, " with strides ", f.stride_down, " and ", f.stride_across, ", dilated by ",
                  f.dilation_down, " and ", f.dilation_across, "; each must be at least 1 and below 2^31.");
  if (f.padding_down < 0 || f.padding_across < 0 || f.padding_down >= kMaxSize || f.padding_across >= kMaxSize)
    return concat("the padding is ", f.padding_down, " and ", f.padding_across, "; it must be at least 0 and below 2^31.");
  const Images result = convolved(images, f, 1);
  const std::string reach = f.dilation_down == 1 && f.dilation_across == 1
                                ? std::string()
                                : concat(", dilated to ", f.effective_height(), " x ", f.effective_width(), ",");
  if (result.height < 1 || result.width < 1)
    return concat("a filter of ", f.height, " x ", f.width, reach, " does not fit in an image of ", images.height, " x ", images.width,
                  " with padding ", f.padding_down, " and ", f.padding_across, ", and nothing would come out; pad by more, or take a ",
                  "smaller filter.");
  const std::int64_t elements = saturating_product(images.count, result.pixels(), f.height, f.width, images.channels);
  if (elements > kMaxElements || saturating_product(images.count, images.height, images.width, images.channels) > kMaxElements)
    return concat(images.count, " images of ", images.height, " x ", images.width,
                  " have more products than a computer makes; ask for fewer.");
  return {};
}

bool columns_in_place(std::int64_t pitch, const Images& images, const ConvolutionFilter& f) {
  const Images places = convolved(images, f, 1);
  const std::int64_t taps = f.taps();
  const bool gapless = pitch == images.channels || taps == 1;
  const bool side_by_side = (f.height == 1 || f.width == images.width) && f.dilation_down == 1 && f.dilation_across == 1;
  // From one output to the next across, down, and to the next image: so many pixels each, where there is a next one.
  const bool one_behind_the_other = (places.width == 1 || f.stride_across == taps) &&
                                    (places.height == 1 || f.stride_down * images.width == places.width * taps) &&
                                    images.pixels() == places.pixels() * taps;
  return f.padding_down == 0 && f.padding_across == 0 && gapless && side_by_side && one_behind_the_other;
}

}  // namespace tilewave
