#include "framework/io/picture.h"

#include <algorithm>
#include <utility>

#include "kernels/core/error.h"

namespace tilewave {
namespace {

Picture grey_of(const Picture& colored) {
  Picture grey{.shape = {.height = colored.shape.height, .width = colored.shape.width, .channels = 1}, .pixels = {}};
  grey.pixels.reserve(colored.pixels.size() / 3);
  for (std::size_t at = 0; at < colored.pixels.size(); at += 3) {
    const int sum = 299 * colored.pixels[at] + 587 * colored.pixels[at + 1] + 114 * colored.pixels[at + 2];
    grey.pixels.push_back(static_cast<std::uint8_t>((sum + 500) / 1000));
  }
  return grey;
}

Picture colored_of(const Picture& grey) {
  Picture colored{.shape = {.height = grey.shape.height, .width = grey.shape.width, .channels = 3}, .pixels = {}};
  colored.pixels.reserve(grey.pixels.size() * 3);
  for (const std::uint8_t pixel : grey.pixels) colored.pixels.insert(colored.pixels.end(), 3, pixel);
  return colored;
}

// One side cut into fewer parts of one size. In units of a part of a pixel, `to` to a pixel and `from` to a part, all lengths are integers.
struct Cover {
  std::int64_t from = 0, to = 0;

  std::int64_t first(std::int64_t part) const { return part * from / to; }
  std::int64_t last(std::int64_t part) const { return ((part + 1) * from - 1) / to; }
  std::int64_t weight(std::int64_t part, std::int64_t pixel) const {
    return std::min((part + 1) * from, (pixel + 1) * to) - std::max(part * from, pixel * to);
  }
};

Picture averaged(const Picture& picture, std::int64_t height, std::int64_t width) {
  const PictureShape& from = picture.shape;
  const std::int64_t channels = from.channels, total = from.height * from.width;  // of a pixel's weights
  const Cover down{.from = from.height, .to = height}, across{.from = from.width, .to = width};
  Picture small{.shape = {.height = height, .width = width, .channels = channels}, .pixels = {}};
  small.pixels.reserve(static_cast<std::size_t>(small.shape.values()));
  std::vector<std::int64_t> sums(static_cast<std::size_t>(width * channels));
  for (std::int64_t row = 0; row < height; ++row) {
    std::fill(sums.begin(), sums.end(), 0);
    for (std::int64_t y = down.first(row); y <= down.last(row); ++y) {
      const std::uint8_t* line = picture.pixels.data() + y * from.width * channels;
      for (std::int64_t column = 0; column < width; ++column) {
        for (std::int64_t x = across.first(column); x <= across.last(column); ++x) {
          const std::int64_t weight = down.weight(row, y) * across.weight(column, x);
          for (std::int64_t c = 0; c < channels; ++c)
            sums[static_cast<std::size_t>(column * channels + c)] += weight * line[x * channels + c];
        }
      }
    }
    for (const std::int64_t sum : sums) small.pixels.push_back(static_cast<std::uint8_t>((sum + total / 2) / total));
  }
  return small;
}

}  // namespace

Picture fitted(Picture picture, const PictureForm& form, std::string_view name) {
  const PictureShape& wanted = form.shape;
  TW_CHECK(wanted.height > 0 && wanted.width > 0 && wanted.channels > 0, "a model reads pictures of at least one pixel and channel, not ",
           wanted.height, "x", wanted.width, "x", wanted.channels, ".");
  TW_CHECK(picture.shape.values() > 0 && std::ssize(picture.pixels) == picture.shape.values(), name, ": ", picture.pixels.size(),
           " bytes are no picture of ", picture.shape.height, "x", picture.shape.width, "x", picture.shape.channels, ".");
  if (picture.shape.channels != wanted.channels) {
    const bool known = std::max(picture.shape.channels, wanted.channels) == 3 && std::min(picture.shape.channels, wanted.channels) == 1;
    TW_CHECK_INPUT(known, name, ": has ", picture.shape.channels, " channels, and the model reads ", wanted.channels,
                   "; only grey and color, 1 and 3 channels, are turned into each other.");
    picture = wanted.channels == 1 ? grey_of(picture) : colored_of(picture);
  }
  const auto [height, width, channels] = picture.shape;
  if (height != wanted.height || width != wanted.width) {
    TW_CHECK_INPUT(height >= wanted.height && width >= wanted.width, name, ": is ", width, " pixels wide and ", height,
                   " high, smaller than the ", wanted.width, " and ", wanted.height,
                   " that the model reads; larger pictures alone are resized: enlarge it, or put a border around it.");
    const std::int64_t ours = width * wanted.height, theirs = height * wanted.width;
    TW_CHECK_INPUT(ours <= 2 * theirs && theirs <= 2 * ours, name, ": is ", width, " pixels wide and ", height,
                   " high, which resizing to the ", wanted.width, " and ", wanted.height,
                   " that the model reads would distort more than twofold; cut out what it shows.");
    picture = averaged(picture, wanted.height, wanted.width);
  }
  if (form.tones == Tones::inverted) {
    for (std::uint8_t& pixel : picture.pixels) pixel = static_cast<std::uint8_t>(255 - pixel);
  }
  return picture;
}

}  // namespace tilewave
