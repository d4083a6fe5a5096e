// Pictures brought to the size, channels and tones that a model reads: a literal mean, and every refusal.
#include "framework/io/picture.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <vector>

#include "framework/tensor/random.h"
#include "kernels/core/error.h"
#include "tests/framework/io/files.h"

namespace tilewave {
namespace {

Picture random_picture(const PictureShape& shape, std::uint64_t seed) {
  Random random(random_key(seed, shape.height, shape.width));
  Picture picture{.shape = shape, .pixels = std::vector<std::uint8_t>(static_cast<std::size_t>(shape.values()))};
  for (std::uint8_t& pixel : picture.pixels) pixel = static_cast<std::uint8_t>(random.below(256));
  return picture;
}

// The mean over the rectangle that a pixel of the smaller picture covers, by many points of it.
double sampled_mean(const Picture& picture, const PictureShape& small, std::int64_t row, std::int64_t column, std::int64_t channel) {
  double sum = 0;
  const std::int64_t samples_y = picture.shape.height, samples_x = picture.shape.width;  // which fall on no edge between two pixels
  for (std::int64_t y = 0; y < samples_y; ++y) {
    for (std::int64_t x = 0; x < samples_x; ++x) {
      const std::int64_t at_y = ((row * samples_y + y) * 2 + 1) * picture.shape.height / (2 * samples_y * small.height);
      const std::int64_t at_x = ((column * samples_x + x) * 2 + 1) * picture.shape.width / (2 * samples_x * small.width);
      sum += picture.pixels[static_cast<std::size_t>((at_y * picture.shape.width + at_x) * picture.shape.channels + channel)];
    }
  }
  return sum / static_cast<double>(samples_y * samples_x);
}

TEST(Picture, OfTheWantedShapeStaysAsItIs) {
  for (const std::int64_t channels : {1, 2, 3, 5}) {
    const Picture picture = random_picture({.height = 7, .width = 9, .channels = channels}, 3);
    EXPECT_EQ(fitted(picture, {.shape = picture.shape}, "a.png").pixels, picture.pixels);
  }
}

TEST(Picture, LargerOnesAreAveraged) {
  for (const PictureShape& large : {PictureShape{8, 8, 1}, {4, 4, 1}, {5, 4, 3}, {7, 5, 1}, {28, 20, 3}, {9, 11, 1}}) {
    const PictureShape small{.height = 4, .width = 4, .channels = large.channels};
    const Picture picture = random_picture(large, 5);
    const Picture fit = fitted(picture, {.shape = small}, "a.png");
    ASSERT_EQ(fit.shape, small);
    for (std::int64_t i = 0; i < small.values(); ++i) {
      const std::int64_t c = i % small.channels, x = i / small.channels % small.width, y = i / small.channels / small.width;
      EXPECT_NEAR(fit.pixels[static_cast<std::size_t>(i)], sampled_mean(picture, small, y, x, c), 0.501)
          << large.height << "x" << large.width << " " << y << " " << x << " " << c;
    }
  }
}

TEST(Picture, AMeanOfOneShadeIsThatShade) {
  for (const int shade : {0, 1, 127, 254, 255}) {
    const Picture even{.shape = {.height = 201, .width = 199, .channels = 1},
                       .pixels = std::vector<std::uint8_t>(201 * 199, static_cast<std::uint8_t>(shade))};
    const Picture fit = fitted(even, {.shape = {.height = 28, .width = 28, .channels = 1}}, "a.png");
    EXPECT_TRUE(std::all_of(fit.pixels.begin(), fit.pixels.end(), [&](std::uint8_t pixel) { return pixel == shade; })) << shade;
  }
}

TEST(Picture, ColorBecomesGreyAndGreyColor) {
  const Picture color{.shape = {.height = 1, .width = 4, .channels = 3}, .pixels = {255, 0, 0, 0, 255, 0, 0, 0, 255, 10, 20, 30}};
  const Picture grey = fitted(color, {.shape = {.height = 1, .width = 4, .channels = 1}}, "a.png");
  EXPECT_EQ(grey.pixels, (std::vector<std::uint8_t>{76, 150, 29, 18}));  // 76.2, 149.7, 29.1, 18.15
  const Picture back = fitted(grey, {.shape = color.shape}, "a.png");
  EXPECT_EQ(back.pixels, (std::vector<std::uint8_t>{76, 76, 76, 150, 150, 150, 29, 29, 29, 18, 18, 18}));
}

TEST(Picture, TonesAreInverted) {
  const Picture picture{.shape = {.height = 1, .width = 3, .channels = 1}, .pixels = {0, 100, 255}};
  EXPECT_EQ(fitted(picture, {.shape = picture.shape, .tones = Tones::inverted}, "a.png").pixels, (std::vector<std::uint8_t>{255, 155, 0}));
}

TEST(Picture, OddSizesAreRefused) {
  const auto refusal = [](const PictureShape& shape, const PictureShape& wanted) {
    return sentence_of<InputError>([&] { fitted(random_picture(shape, 1), {.shape = wanted}, "scan.png"); });
  };
  const PictureShape wanted{.height = 28, .width = 28, .channels = 1};
  EXPECT_NE(refusal({28, 27, 1}, wanted).find("scan.png: is 27 pixels wide and 28 high, smaller than the 28 and 28"), std::string::npos);
  EXPECT_NE(refusal({27, 28, 1}, wanted).find("smaller"), std::string::npos);
  EXPECT_NE(refusal({28, 57, 1}, wanted).find("more than twofold; cut out"), std::string::npos);
  EXPECT_NE(refusal({57, 28, 1}, wanted).find("more than twofold"), std::string::npos);
  EXPECT_EQ(refusal({28, 56, 1}, wanted), "");
  EXPECT_EQ(refusal({56, 28, 1}, wanted), "");
  EXPECT_NE(refusal({28, 28, 2}, wanted).find("has 2 channels, and the model reads 1"), std::string::npos);
  EXPECT_NE(refusal({28, 28, 3}, {28, 28, 4}).find("has 3 channels, and the model reads 4"), std::string::npos);
  EXPECT_THROW(fitted({.shape = {2, 2, 1}, .pixels = {1, 2, 3}}, {.shape = wanted}, "a"), Error);
}

}  // namespace
}  // namespace tilewave
