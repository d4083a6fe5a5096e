// Shades reach the device as they are and become what the table says, in the type that the context computes in; pictures that are missing
// are zero, whatever was there before.
#include "models/pictures/pixels.h"

#include <gtest/gtest.h>
#include <vector>

#include "framework/tensor/host_tensor.h"
#include "kernels/core/error.h"

namespace tilewave {
namespace {

class PixelsIn : public testing::TestWithParam<Precision> {};
INSTANTIATE_TEST_SUITE_P(Precisions, PixelsIn, testing::Values(Precision::fp64, Precision::fp32),
                         [](const auto& one) { return std::string(name_of(one.param)); });

TEST_P(PixelsIn, AreWhatTheTableSays) {
  Context context(make_cpu_queue(1), probe_cpu(1), {.precision = GetParam()});
  const SeenPictures seen{.shape = {.height = 4, .width = 5, .channels = 3}, .normalization = {.mean = {0.4}, .deviation = {0.3}}};
  const std::int64_t before = context.persistent_bytes();
  const Pixels pixels = make_pixels(context, seen, 2);
  EXPECT_EQ(context.persistent_bytes() - before,
            (pixels.shades.bytes() + 255) / 256 * 256 + pixels.table.bytes() + (pixels.values.bytes() + 255) / 256 * 256);
  EXPECT_EQ(pixels.shades.bytes(), 120) << "a byte for each shade";
  EXPECT_EQ(pixels.values.dtype(), context.precision().compute);
  const std::vector<float> table = shade_table(seen.normalization, 3);
  std::vector<std::uint8_t> shades(120);
  for (std::size_t i = 0; i < shades.size(); ++i) shades[i] = static_cast<std::uint8_t>(37 * i);
  for (const std::size_t given : {120U, 60U, 120U}) {  // into the same memory
    shades[7] += 1;
    upload_pixels(context, std::span(shades).first(given), pixels);
    std::vector<double> expected(120, 0.0);
    for (std::size_t i = 0; i < given; ++i) expected[i] = table[i % 3 * 256 + shades[i]];
    EXPECT_EQ(read_elements(context, pixels.values), expected);
  }
  EXPECT_NE(table[0], 0.0F) << "a missing picture would not be told from a black one";
  for (const std::size_t wrong : {0U, 59U, 61U, 119U}) {
    EXPECT_THROW(upload_pixels(context, std::span(shades).first(wrong), pixels), Error) << wrong;
  }
  shades.resize(180);
  EXPECT_THROW(upload_pixels(context, shades, pixels), Error) << "a picture more than there is room for";
  EXPECT_THROW(make_pixels(context, seen, 0), Error);
  EXPECT_THROW(make_pixels(context, {.shape = seen.shape, .normalization = {.mean = {0.1, 0.2}}}, 1), Error);
}

}  // namespace
}  // namespace tilewave
