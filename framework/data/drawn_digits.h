// Digits that are drawn by rule, to learn to see with nothing to download: seven segments, bright on dark as MNIST's.
//   picture i   shows the digit i % 10; all else of it is a function of (seed, part, i), however many are drawn
//   jitter      height, width, place, slant and thickness of the strokes, and the shades of ink and ground
//   noise       each value moves by up to `noise`, small steps being likelier than large ones
// Strokes have round ends and smooth edges: a pixel is covered by as many sixteenths as it has samples within a stroke. All arithmetic is
// of integers, so that the bits are the same on every machine. A color picture has a shade for each channel of ink and of ground.
#pragma once

#include <cstdint>
#include <span>

#include "framework/data/pictures.h"
#include "framework/tensor/random.h"

namespace tilewave {

enum class PicturePart : std::uint8_t { training, held_out };  // no picture of one is drawn from what one of the other is

struct DrawnDigits {
  std::int64_t count = 0;
  PictureShape shape = {.height = 28, .width = 28, .channels = 1};  // sides of 20 to 512, 1 or 3 channels
  std::uint64_t seed = 0;
  PicturePart part = PicturePart::training;
  std::int64_t noise = 40;  // of 255
};

inline constexpr std::int64_t kDrawnDigitClasses = 10;

// InputError for sizes, channels or noise that are out of range.
PictureSet drawn_digits(const DrawnDigits& how);

// One digit. What is drawn from `random` does not depend on the digit: the same numbers draw any digit in the same style.
void draw_digit(std::int32_t digit, Random random, const DrawnDigits& how, std::span<std::uint8_t> pixels);

}  // namespace tilewave
