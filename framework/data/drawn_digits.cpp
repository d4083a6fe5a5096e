#include "framework/data/drawn_digits.h"

#include <algorithm>
#include <array>
#include <bit>
#include <string_view>
#include <vector>

#include "framework/data/fingerprint.h"
#include "kernels/core/error.h"

namespace tilewave {
namespace {

constexpr std::int64_t kUnit = 32;  // lengths to a pixel; with sides of 512 all products below stay within 62 bits
constexpr std::int64_t kMinSide = 20, kMaxSide = 512;
constexpr std::int64_t kSamples = 4;  // to a pixel's side
constexpr std::int64_t kRule = 1;     // grows with what a seed draws, so that fingerprints tell

// A point of a digit's frame: x of -1 left to 1 right, y of -1 top to 1 bottom; and of a picture, in units.
struct Point {
  std::int64_t x = 0, y = 0;
};

struct Segment {
  Point from, to;
};
//   0          segments a to g of a display: the top, then clockwise, the middle last
// 5   1
//   6
// 4   2
//   3
constexpr std::array<Segment, 7> kSegments = {{{{-1, -1}, {1, -1}},
                                               {{1, -1}, {1, 0}},
                                               {{1, 0}, {1, 1}},
                                               {{1, 1}, {-1, 1}},
                                               {{-1, 1}, {-1, 0}},
                                               {{-1, 0}, {-1, -1}},
                                               {{-1, 0}, {1, 0}}}};
constexpr std::array<std::string_view, 10> kDigits = {"012345", "12",     "01346", "01236",   "1256",
                                                      "02356",  "023456", "012",   "0123456", "012356"};

// Uniform over from .. to, both included.
std::int64_t between(Random& random, std::int64_t from, std::int64_t to) {
  return from + std::int64_t{random.below(static_cast<std::uint32_t>(to - from + 1))};
}

// How one digit is drawn, in units.
struct Style {
  Point center, half;          // of the frame
  std::int64_t slant = 0;      // of the top to the right, of the bottom to the left
  std::int64_t thickness = 0;  // half a stroke's

  // Shares of the sides in thousandths. A digit that is as large, slanted and far off as it can be still lies within a square picture.
  Style(Random& random, const PictureShape& shape) {
    const std::int64_t height = shape.height * kUnit, width = shape.width * kUnit, smaller = std::min(height, width);
    half = {.x = smaller * between(random, 160, 210) / 1000, .y = height * between(random, 270, 340) / 1000};
    center = {.x = width / 2 + width * between(random, -90, 90) / 1000, .y = height / 2 + height * between(random, -90, 90) / 1000};
    slant = smaller * between(random, -85, 85) / 1000;
    thickness = smaller * between(random, 42, 65) / 1000;
  }

  Point place(Point in_frame) const {
    return {.x = center.x + in_frame.x * half.x - in_frame.y * slant, .y = center.y + in_frame.y * half.y};
  }
};

// Whether a point lies within `radius` of a segment.
bool covers(const Segment& stroke, std::int64_t radius, Point point) {
  const Point along = {.x = stroke.to.x - stroke.from.x, .y = stroke.to.y - stroke.from.y};
  const Point off = {.x = point.x - stroke.from.x, .y = point.y - stroke.from.y};
  const std::int64_t length2 = along.x * along.x + along.y * along.y, projected = off.x * along.x + off.y * along.y;
  if (projected > 0 && projected < length2) {
    const std::int64_t cross = off.x * along.y - off.y * along.x;
    return cross * cross <= radius * radius * length2;
  }
  const Point end = projected <= 0 ? stroke.from : stroke.to;
  const Point away = {.x = point.x - end.x, .y = point.y - end.y};
  return away.x * away.x + away.y * away.y <= radius * radius;
}

// Marks the samples of each pixel that the stroke covers.
void stroke_over(const Segment& stroke, std::int64_t radius, const PictureShape& shape, std::span<std::uint16_t> samples) {
  const auto first = [&](std::int64_t a, std::int64_t b) { return std::max<std::int64_t>(0, (std::min(a, b) - radius) / kUnit); };
  const auto last = [&](std::int64_t a, std::int64_t b, std::int64_t side) {
    return std::min(side - 1, (std::max(a, b) + radius) / kUnit);
  };
  constexpr std::int64_t step = kUnit / kSamples;
  for (std::int64_t y = first(stroke.from.y, stroke.to.y); y <= last(stroke.from.y, stroke.to.y, shape.height); ++y) {
    for (std::int64_t x = first(stroke.from.x, stroke.to.x); x <= last(stroke.from.x, stroke.to.x, shape.width); ++x) {
      // Most pixels' samples, none of which is further from the middle than 3/4 of a pixel, are all within or all without.
      const Point middle = {.x = x * kUnit + kUnit / 2, .y = y * kUnit + kUnit / 2};
      if (!covers(stroke, radius + kUnit * 3 / 4, middle)) continue;
      unsigned covered = 0;
      for (std::int64_t sample = 0; sample < kSamples * kSamples; ++sample) {
        const Point point = {.x = x * kUnit + sample % kSamples * step + step / 2, .y = y * kUnit + sample / kSamples * step + step / 2};
        if (covers(stroke, radius, point)) covered |= 1u << sample;
      }
      std::uint16_t& pixel = samples[static_cast<std::size_t>(y * shape.width + x)];
      pixel = static_cast<std::uint16_t>(pixel | covered);
    }
  }
}

}  // namespace

void draw_digit(std::int32_t digit, Random random, const DrawnDigits& how, std::span<std::uint8_t> pixels) {
  const PictureShape& shape = how.shape;
  TW_CHECK(digit >= 0 && digit < kDrawnDigitClasses && std::ssize(pixels) == shape.values(), "digit ", digit, " cannot be drawn into ",
           pixels.size(), " bytes; digits are 0 to 9 and the picture has ", shape.values(), ".");
  const Style style(random, shape);
  std::array<std::int64_t, 3> ink = {}, ground = {};
  for (std::int64_t c = 0; c < shape.channels; ++c) {
    ground[static_cast<std::size_t>(c)] = between(random, 0, 60);
    ink[static_cast<std::size_t>(c)] = between(random, 170, 255);
  }
  std::vector<std::uint16_t> samples(static_cast<std::size_t>(shape.height * shape.width));
  for (const char name : kDigits[static_cast<std::size_t>(digit)]) {
    const Segment& segment = kSegments[static_cast<std::size_t>(name - '0')];
    stroke_over({.from = style.place(segment.from), .to = style.place(segment.to)}, style.thickness, shape, samples);
  }
  std::uint8_t* pixel = pixels.data();
  for (const std::uint16_t sample : samples) {
    const std::int64_t covered = std::popcount(sample);
    for (std::size_t c = 0; c < static_cast<std::size_t>(shape.channels); ++c) {
      const std::uint64_t draw = random.next();
      const auto twice = static_cast<std::int64_t>((draw & 255) + (draw >> 8 & 255)) - 255;  // -255 to 255, a triangle
      const std::int64_t value = ground[c] + covered * (ink[c] - ground[c]) / (kSamples * kSamples) + twice * how.noise / 255;
      *pixel++ = static_cast<std::uint8_t>(std::clamp<std::int64_t>(value, 0, 255));
    }
  }
}

PictureSet drawn_digits(const DrawnDigits& how) {
  const auto [height, width, channels] = how.shape;
  TW_CHECK_INPUT(how.count > 0, "there are ", how.count, " pictures to draw; ask for one at least.");
  TW_CHECK_INPUT(std::min(height, width) >= kMinSide && std::max(height, width) <= kMaxSide,
                 "digits are drawn on pictures whose sides have ", kMinSide, " to ", kMaxSide, " pixels, not on ", width, " by ", height,
                 ".");
  TW_CHECK_INPUT(channels == 1 || channels == 3, "digits are drawn in 1 channel (grey) or in 3 (color), not in ", channels, ".");
  TW_CHECK_INPUT(how.noise >= 0 && how.noise <= 255, "the noise of drawn digits lies between 0 and 255, not at ", how.noise, ".");
  Fingerprint fingerprint;
  const std::uint64_t part = how.part == PicturePart::training ? std::uint64_t{'t'} : std::uint64_t{'v'};
  for (const std::int64_t word : {kRule, how.count, height, width, channels, how.noise}) fingerprint.add(static_cast<std::uint64_t>(word));
  fingerprint.add(part);
  fingerprint.add(how.seed);
  return {.shape = how.shape,
          .count = how.count,
          .classes = kDrawnDigitClasses,
          .fingerprint = fingerprint.value(),
          .read = [how, part](std::int64_t index, std::span<std::uint8_t> pixels) {
            const auto digit = static_cast<std::int32_t>(index % kDrawnDigitClasses);
            draw_digit(digit, Random(random_key(how.seed, 'd', part, index)), how, pixels);
            return digit;
          }};
}

}  // namespace tilewave
