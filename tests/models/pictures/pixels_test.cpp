// Pixels reach the device as they are, in the type that the context computes in; so many values and no others.
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

TEST_P(PixelsIn, AreWhatTheHostHas) {
  Context context(make_cpu_queue(1), probe_cpu(1), {.precision = GetParam()});
  const Pixels pixels = make_pixels(context, {.count = 2, .channels = 3, .height = 4, .width = 5});
  EXPECT_EQ(pixels.values.dtype(), context.precision().compute);
  EXPECT_EQ(static_cast<bool>(pixels.staged), GetParam() == Precision::fp64);
  std::vector<float> values(120);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 0.1F * static_cast<float>(i) - 3.0F;
  for (int time = 0; time < 2; ++time) {  // into the same memory
    values[7] += 1.0F;
    upload_pixels(context, values, pixels);
    EXPECT_EQ(read_elements(context, pixels.values), std::vector<double>(values.begin(), values.end()));
  }
  values.pop_back();
  EXPECT_THROW(upload_pixels(context, values, pixels), Error);
  EXPECT_THROW(make_pixels(context, {.count = 0, .channels = 3, .height = 4, .width = 5}), Error);
  EXPECT_THROW(make_pixels(context, {.count = 1, .channels = 3, .height = 4, .width = 5, .layout = ImageLayout::nchw}), Error);
}

}  // namespace
}  // namespace tilewave
