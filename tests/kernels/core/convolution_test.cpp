// Sizes of convolutions as a person counts them, the sentences of what cannot be convolved, and where the columns are x's own memory.
#include "kernels/core/convolution.h"

#include "tests/kernels/ops/im2col_problem.h"

namespace tilewave {
namespace {

using namespace testing_support;

// Every place at which the whole filter lies on the padded image, tried one by one.
TEST(Convolution, OutputsAreThePlacesOfTheFilter) {
  for (std::int64_t size = 1; size <= 9; ++size) {
    for (std::int64_t taps = 1; taps <= 4; ++taps) {
      for (std::int64_t stride = 1; stride <= 3; ++stride) {
        for (std::int64_t padding = 0; padding <= 2; ++padding) {
          for (std::int64_t dilation = 1; dilation <= 3; ++dilation) {
            const ConvolutionFilter down{
                .height = taps, .width = 1, .stride_down = stride, .padding_down = padding, .dilation_down = dilation};
            const ConvolutionFilter across{
                .height = 1, .width = taps, .stride_across = stride, .padding_across = padding, .dilation_across = dilation};
            std::int64_t places = 0;
            for (std::int64_t at = 0; at + (taps - 1) * dilation < size + 2 * padding; at += stride) ++places;
            const Images tall{.count = 2, .channels = 3, .height = size, .width = 1},
                wide{.count = 2, .channels = 3, .height = 1, .width = size};
            EXPECT_EQ(convolved(tall, down, 5), (Images{.count = 2, .channels = 5, .height = places, .width = 1}));
            EXPECT_EQ(convolved(wide, across, 5), (Images{.count = 2, .channels = 5, .height = 1, .width = places}));
            EXPECT_EQ(refuse_convolution(tall, down).empty(), places > 0);
            EXPECT_EQ(refuse_convolution(wide, across).empty(), places > 0);
          }
        }
      }
    }
  }
}

// Deep Learning Performance, section 7.4.1.
TEST(Convolution, ADilatedFilterReachesFarther) {
  const ConvolutionFilter filter{.height = 3, .width = 5, .dilation_down = 2, .dilation_across = 3};
  EXPECT_EQ(filter.effective_height(), 5);
  EXPECT_EQ(filter.effective_width(), 13);
  EXPECT_EQ(filter.taps(), 15);
}

TEST(Convolution, SaysWhatCannotBeConvolved) {
  const Images images{.count = 2, .channels = 3, .height = 4, .width = 5};
  const auto refusal = [](const Images& of, const ConvolutionFilter& filter) { return refuse_convolution(of, filter); };
  EXPECT_EQ(refusal(images, {}), "");
  EXPECT_EQ(refusal(images, {.height = 7, .padding_down = 1}),
            "a filter of 7 x 3 does not fit in an image of 4 x 5 with padding 1 and 0, and nothing would come out; pad by more, or take a "
            "smaller filter.");
  EXPECT_NE(refusal(images, {.dilation_across = 3}).find("a filter of 3 x 3, dilated to 3 x 7, does not fit"), std::string::npos);
  EXPECT_NE(refusal(images, {.stride_down = 0}).find("strides 0 and 1"), std::string::npos);
  EXPECT_NE(refusal(images, {.dilation_across = 0}).find("dilated by 1 and 0"), std::string::npos);
  EXPECT_NE(refusal(images, {.height = 0}).find("the filter is 0 x 3"), std::string::npos);
  EXPECT_NE(refusal(images, {.padding_across = -1}).find("the padding is 0 and -1"), std::string::npos);
  EXPECT_NE(refusal({.count = 2, .channels = 0, .height = 4, .width = 5}, {}).find("images are 2 of 0 channels, 4 x 5"), std::string::npos);
  EXPECT_NE(refusal(with_layout(images, ImageLayout::nchw), {}).find("images are in nchw; convolution takes nhwc"), std::string::npos);
  const std::int64_t many = std::int64_t{1} << 30;
  EXPECT_NE(refusal({.count = many, .channels = many, .height = many, .width = many}, {}).find("ask for fewer"), std::string::npos);
}

// Joined rows of x are the columns exactly where the predicate says so: of every small image and filter, numbers compared.
TEST(Convolution, ColumnsLieInPlaceWhereJoinedRowsAreThem) {
  int in_place = 0, wider = 0;
  for (const std::int64_t gap : {0, 1}) {
    for (std::int64_t code = 0; code < 2 * 4 * 4 * 3 * 3 * 3 * 3 * 2; ++code) {
      std::int64_t rest = code;
      const auto digit = [&](std::int64_t choices) {
        const std::int64_t number = rest % choices;
        rest /= choices;
        return number;
      };
      const Images images{.count = 1 + digit(2), .channels = 2, .height = 1 + digit(4), .width = 1 + digit(4)};
      ConvolutionFilter filter{.height = 1 + digit(3), .width = 1 + digit(3), .stride_down = 1 + digit(3), .stride_across = 1 + digit(3)};
      filter.padding_across = digit(2);
      if (!refuse_convolution(images, filter).empty()) continue;
      const Images outputs = convolved(images, filter, 1);
      const std::int64_t taps = filter.taps(), pitch = images.channels + gap;
      const bool said = columns_in_place(pitch, images, filter);
      // An element's place in memory, joined and by the definition.
      bool same = images.rows() == outputs.rows() * taps;
      for (std::int64_t row = 0; same && row < outputs.rows(); ++row) {
        for (std::int64_t tap = 0; same && tap < taps; ++tap) {
          const auto pixel = pixel_of(images, filter, row, tap);
          for (std::int64_t c = 0; same && c < images.channels; ++c)
            same = pixel && *pixel * pitch + c == row * pitch * taps + tap * images.channels + c;
        }
      }
      EXPECT_EQ(said, same) << text_of({images, filter}) << ", pitch " << pitch;
      in_place += said ? 1 : 0;
      wider += said && taps > 1 ? 1 : 0;
    }
  }
  EXPECT_GT(in_place, 50);
  EXPECT_GT(wider, 10);
}

}  // namespace
}  // namespace tilewave
