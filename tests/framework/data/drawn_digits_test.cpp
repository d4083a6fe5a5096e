// Digits drawn by rule: told apart by many pixels, the same bits for the same seed, and neither trivial nor hopeless to learn.
#include "framework/data/drawn_digits.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <gtest/gtest.h>
#include <set>
#include <vector>

#include "kernels/core/error.h"
#include "tests/framework/data/scratch.h"

namespace tilewave {
namespace {

using Pixels = std::vector<std::uint8_t>;

Pixels drawn_pixels(const PictureSet& set, std::int64_t index) {
  Pixels pixels(static_cast<std::size_t>(set.shape.values()), 0xAA);
  set.read(index, pixels);
  return pixels;
}

std::int64_t differing(const Pixels& one, const Pixels& other, int least) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < one.size(); ++i) count += std::abs(one[i] - other[i]) > least ? 1 : 0;
  return count;
}

// In one style, without noise: what tells two digits apart is a segment at least.
TEST(DrawnDigits, EachDiffersFromEachOther) {
  const struct {
    PictureShape shape;
    std::int64_t values;
  } cases[] = {{{.height = 28, .width = 28, .channels = 1}, 10},
               {{.height = 20, .width = 20, .channels = 1}, 4},
               {{.height = 64, .width = 40, .channels = 1}, 24},
               {{.height = 32, .width = 32, .channels = 3}, 40}};
  for (const auto& [shape, values] : cases) {
    const DrawnDigits how{.count = 1, .shape = shape, .noise = 0};
    for (std::uint64_t style = 0; style < 100; ++style) {
      std::array<Pixels, 10> digits;
      for (std::int32_t digit = 0; digit < 10; ++digit) {
        Pixels& pixels = digits[static_cast<std::size_t>(digit)];
        pixels.assign(static_cast<std::size_t>(shape.values()), 0xAA);
        draw_digit(digit, Random(random_key(5, style)), how, pixels);
        for (std::size_t before = 0; before < static_cast<std::size_t>(digit); ++before) {
          ASSERT_GE(differing(digits[before], pixels, 50), values) << before << " and " << digit << " in style " << style;
        }
      }
    }
  }
}

TEST(DrawnDigits, EdgesAreSmooth) {
  Pixels pixels(28 * 28);
  draw_digit(8, Random(random_key(1, 2)), {.count = 1, .noise = 0}, pixels);
  const std::set<std::uint8_t> shades(pixels.begin(), pixels.end());
  EXPECT_GT(shades.size(), 8u);
  EXPECT_LE(shades.size(), 17u);
  const auto ground = std::count(pixels.begin(), pixels.end(), *shades.begin()),
             ink = std::count(pixels.begin(), pixels.end(), *shades.rbegin());
  EXPECT_GT(ground, 28 * 28 / 2);
  EXPECT_GT(ink, 28);
}

// The rule is fixed: runs that are resumed, and figures that were noted, rely on it.
TEST(DrawnDigits, StayWhatTheyAre) {
  EXPECT_EQ(drawn_digits({.count = 10, .seed = 7}).fingerprint, drawn_digits({.count = 10, .seed = 7}).fingerprint);
  std::uint64_t sum = 0;
  for (const std::int64_t channels : {1, 3}) {
    const PictureSet set = drawn_digits({.count = 50, .shape = {.height = 28, .width = 28, .channels = channels}, .seed = 7});
    for (std::int64_t index = 0; index < 50; ++index) {
      for (const std::uint8_t pixel : drawn_pixels(set, index)) sum = mix64(sum ^ pixel) + kGolden64;
    }
  }
  EXPECT_EQ(sum, 1585106252222453268u);
}

TEST(DrawnDigits, AreAFunctionOfSeedPartAndNumber) {
  const PictureSet few = drawn_digits({.count = 20, .seed = 7}), many = drawn_digits({.count = 100'000, .seed = 7});
  const PictureSet other = drawn_digits({.count = 20, .seed = 8});
  const PictureSet held_out = drawn_digits({.count = 20, .seed = 7, .part = PicturePart::held_out});
  std::set<Pixels> seen;
  for (std::int64_t index = 19; index >= 0; --index) {
    Pixels pixels(28 * 28);
    EXPECT_EQ(few.read(index, pixels), index % 10);
    EXPECT_EQ(pixels, drawn_pixels(many, index));
    seen.insert(pixels);
    for (const PictureSet* set : {&other, &held_out}) seen.insert(drawn_pixels(*set, index));
  }
  EXPECT_EQ(seen.size(), 60u) << "no two are alike";
  const std::set<std::uint64_t> fingerprints = {few.fingerprint, many.fingerprint, other.fingerprint, held_out.fingerprint,
                                                drawn_digits({.count = 20, .seed = 7, .noise = 41}).fingerprint};
  EXPECT_EQ(fingerprints.size(), 5u);
}

TEST(DrawnDigits, NoiseMovesValuesByNoMoreThanItSays) {
  Pixels clean(28 * 28), noisy(28 * 28);
  std::int64_t moved = 0, far = 0;
  for (std::uint64_t style = 0; style < 20; ++style) {
    const Random random(random_key(3, style));
    draw_digit(4, random, {.count = 1, .noise = 0}, clean);
    draw_digit(4, random, {.count = 1, .noise = 40}, noisy);
    EXPECT_EQ(differing(clean, noisy, 40), 0);
    moved += differing(clean, noisy, 0);
    far += differing(clean, noisy, 20);
  }
  EXPECT_GT(moved, 20 * 28 * 28 * 6 / 10);
  EXPECT_GT(far, 20 * 28 * 28 / 10);
  EXPECT_LT(far, moved / 2);
}

// The mean of each digit's pictures, and the nearest of them: it knows nothing of shifts, and so is often wrong.
TEST(DrawnDigits, TheNearestMeanIsRightMoreOftenThanNot) {
  constexpr std::int64_t kTraining = 3'000, kHeldOut = 1'000;
  const PictureSet training = drawn_digits({.count = kTraining, .seed = 7});
  const PictureSet held_out = drawn_digits({.count = kHeldOut, .seed = 7, .part = PicturePart::held_out});
  std::array<std::vector<double>, 10> means;
  means.fill(std::vector<double>(28 * 28));
  for (std::int64_t index = 0; index < kTraining; ++index) {
    const Pixels pixels = drawn_pixels(training, index);
    for (std::size_t i = 0; i < pixels.size(); ++i) means[static_cast<std::size_t>(index % 10)][i] += pixels[i] / (kTraining / 10.0);
  }
  std::int64_t right = 0;
  for (std::int64_t index = 0; index < kHeldOut; ++index) {
    const Pixels pixels = drawn_pixels(held_out, index);
    std::array<double, 10> distances = {};
    for (std::size_t digit = 0; digit < 10; ++digit) {
      for (std::size_t i = 0; i < pixels.size(); ++i) {
        const double off = pixels[i] - means[digit][i];
        distances[digit] += off * off;
      }
    }
    right += std::min_element(distances.begin(), distances.end()) - distances.begin() == index % 10 ? 1 : 0;
  }
  EXPECT_GT(right, kHeldOut * 6 / 10);
  EXPECT_LT(right, kHeldOut * 9 / 10);
}

TEST(DrawnDigits, OutOfRangeAreRefused) {
  const auto refusal = [](const DrawnDigits& how) { return input_error([&] { drawn_digits(how); }); };
  EXPECT_TRUE(says(refusal({.count = 0}), {"0 pictures to draw"}));
  EXPECT_TRUE(says(refusal({.count = 1, .shape = {19, 28, 1}}), {"20 to 512 pixels", "28 by 19"}));
  EXPECT_TRUE(says(refusal({.count = 1, .shape = {28, 513, 1}}), {"513 by 28"}));
  EXPECT_TRUE(says(refusal({.count = 1, .shape = {28, 28, 2}}), {"1 channel (grey) or in 3 (color), not in 2"}));
  EXPECT_TRUE(says(refusal({.count = 1, .noise = 256}), {"between 0 and 255, not at 256"}));
  Pixels pixels(28 * 28);
  EXPECT_THROW(draw_digit(10, Random(1), {.count = 1}, pixels), Error);
  EXPECT_THROW(draw_digit(1, Random(1), {.count = 1}, std::span(pixels).first(1)), Error);
}

// At the largest size nothing overflows: a corner far from every stroke stays ground.
TEST(DrawnDigits, OfTheLargestSize) {
  const PictureShape shape{.height = 512, .width = 512, .channels = 1};
  Pixels pixels(static_cast<std::size_t>(shape.values()));
  for (std::uint64_t style = 0; style < 3; ++style) {
    draw_digit(8, Random(random_key(9, style)), {.count = 1, .shape = shape, .noise = 0}, pixels);
    const std::uint8_t ground = pixels.front();
    EXPECT_LE(ground, 60);
    const auto covered = std::count_if(pixels.begin(), pixels.end(), [&](std::uint8_t pixel) { return pixel != ground; });
    EXPECT_GT(covered, std::ssize(pixels) / 20);
    EXPECT_LT(covered, std::ssize(pixels) / 3);
  }
}

}  // namespace
}  // namespace tilewave
