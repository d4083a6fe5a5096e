// A picture as bytes, and the rule by which one of another size, other channels or other tones becomes what a model reads:
//   channels  3 to 1: (299 red + 587 green + 114 blue) / 1000; 1 to 3: the grey thrice
//   size      a picture that is larger is averaged: a pixel is the mean of the part of the picture that it covers, to the nearest integer
//   refused   one that is smaller on a side, and one whose sides' ratio is more than twice the wanted one or less than half of it
// A picture that already has the wanted shape stays as it is, bit for bit.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace tilewave {

struct PictureShape {
  std::int64_t height = 0, width = 0, channels = 0;

  constexpr std::int64_t values() const { return height * width * channels; }
  friend bool operator==(const PictureShape&, const PictureShape&) = default;
};

struct Picture {
  PictureShape shape;
  std::vector<std::uint8_t> pixels;  // [height, width, channels]
};

// A scan is dark ink on white paper, MNIST's digits are bright on black.
enum class Tones : std::uint8_t { as_stored, inverted };

struct PictureForm {
  PictureShape shape;
  Tones tones = Tones::as_stored;
};

// InputError, "NAME: ...", where the rule refuses the picture.
Picture fitted(Picture picture, const PictureForm& form, std::string_view name);

}  // namespace tilewave
