#include "app/options/literals.h"

#include <gtest/gtest.h>

namespace tilewave {
namespace {

template <class Fn>
std::string refusal(const Fn& read) {
  try {
    read();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Literals, AreReadAsTheyAreWritten) {
  const Layer layer = layer_of({"--layer", "512<-128@1536"});
  EXPECT_EQ(layer.text(), "512<-128@1536");
  EXPECT_EQ(layer.out, 512);
  EXPECT_EQ(layer.in, 128);
  EXPECT_EQ(layer.tokens, 1536);
  const Layer gemm = gemm_of({"--gemm", "8192x128x4096"});
  EXPECT_EQ(gemm.text(), "8192<-4096@128") << "M outputs, N tokens, K inputs";
  const Tile tile = tile_of({"--tile", "256x128"});
  EXPECT_EQ(tile.m, 256);
  EXPECT_EQ(tile.n, 128);
  const Matrix matrix = matrix_of({"--op x", "65536x1024"});
  EXPECT_EQ(matrix.rows, 65536);
  EXPECT_EQ(matrix.cols, 1024);
  EXPECT_EQ(range_of({"--tokens", "96:300:96"}), (std::vector<std::int64_t>{96, 192, 288}));
  EXPECT_EQ(range_of({"--tokens", "5:5:7"}), (std::vector<std::int64_t>{5}));
}

TEST(Literals, WhatIsWrittenOtherwiseIsOneSentenceWithTheOptionAndAnExample) {
  const std::string layer = "a layer is written out<-in@tokens, for example 512<-128@1536.";
  for (const char* text : {"", "512", "512<-128", "512<-128@", "512<-128@0", "512<-128@-1", "512<128@1", "512<-128@1 ", "+512<-128@1",
                           "512<-128@2147483648", "99999999999999999999<-1@1"}) {
    EXPECT_EQ(refusal([&] { (void)layer_of({"--layer", text}); }), concat("--layer ", text, ": ", layer));
  }
  for (const char* text : {"1x2", "1x2x", "1x2x3x4", "1X2X3", "1x2x3.0", "0x2x3"}) {
    EXPECT_EQ(refusal([&] {
                (void)gemm_of({"--gemm", text});
              }),
              concat("--gemm ", text, ": a GEMM is written MxNxK, for example 8192x128x8192."));
  }
  for (const char* text : {"256", "256x", "x128", "0x8", "256x128x64"}) {
    EXPECT_EQ(refusal([&] { (void)tile_of({"--tile", text}); }), concat("--tile ", text, ": a tile is written MxN, for example 256x128."));
  }
  for (const char* text : {"1:2", "2:1:1", "1:2:0", "1:20002:2", "1:2:3:", "a:b:c"}) {
    EXPECT_NE(refusal([&] { (void)range_of({"--tokens", text}); }).find("a range is written first:last:step"), std::string::npos) << text;
  }
}

TEST(Literals, AConvolutionAndWhatMayFollowIt) {
  const auto read = [](const std::string& text) { return convolution_of({"--convolution", text}); };
  const ConvolutionLayer plain = read("256x55x56x64->128,3x5");
  EXPECT_EQ(plain.images, (Images{.count = 256, .channels = 64, .height = 55, .width = 56}));
  EXPECT_EQ(plain.filter, (ConvolutionFilter{.height = 3, .width = 5}));
  EXPECT_EQ(plain.outputs, 128);
  EXPECT_EQ(
      read("1x9x9x3->8,3x5,pad=2x1,dilation=1x2,stride=3").filter,
      (ConvolutionFilter{
          .height = 3, .width = 5, .stride_down = 3, .stride_across = 3, .padding_down = 2, .padding_across = 1, .dilation_across = 2}));
  // pad=same has a filter's reach to go by, wherever the dilation stands.
  for (const char* text : {"1x9x9x3->8,3x5,pad=same,dilation=2", "1x9x9x3->8,3x5,dilation=2,pad=same"}) {
    EXPECT_EQ(read(text).filter.padding_down, 2);
    EXPECT_EQ(read(text).filter.padding_across, 4);
  }
  EXPECT_EQ(read("1x9x9x3->8,3x3,pad=0").filter.padding_down, 0);
}

TEST(Literals, AConvolutionWrittenOtherwiseIsAnsweredWithAnExample) {
  const auto said_of = [](const std::string& text) { return refusal([&] { (void)convolution_of({"--convolution", text}); }); };
  for (const char* text : {"", "1x9x9x3", "1x9x9x3->8", "1x9x9x3->8,", "1x9x9x3->8,3", "1x9x9x3->8,3x3,", "1x9x9->8,3x3", "1x9x9x0->8,3x3",
                           "1x9x9x3->8,3x3,stride", "1x9x9x3->8,3x3,stride=", "1x9x9x3->8,3x3,stride=0", "1x9x9x3->8,3x3,stride=2x",
                           "1x9x9x3->8,3x3,stride=1x2x3", "1x9x9x3->8,3x3,pad=-1", "1x9x9x3->8,3x3,dilation=same", "1x9x9x3->8,3x3,,pad=1",
                           "1x9x9x3->8,3x3,depth=2", "1x9x9x3<-8,3x3", "1x9x9x3->8,3x3 "}) {
    const std::string answered = said_of(text);
    EXPECT_TRUE(answered.starts_with(concat("--convolution ", text, ": a convolution is written NxHxWxC->K,RxS[,stride=1]"))) << answered;
    EXPECT_TRUE(answered.ends_with("for example 256x56x56x64->128,3x3,pad=same.")) << answered;
  }
  for (const char* text : {"groups=2", "group=32", "depthwise", "depthwise=1"}) {
    const std::string answered = said_of(concat("1x9x9x32->32,3x3,", text));
    EXPECT_NE(answered.find(concat("grouped and depthwise convolutions are not here, and every output has all channels; leave out ", text)),
              std::string::npos)
        << answered;
  }
  EXPECT_NE(said_of("1x9x9x3->8,2x3,pad=same").find("the filter reaches over 2 x 3, an even number; take an odd filter, or say pad=0x1."),
            std::string::npos);
  EXPECT_NE(said_of("1x4x4x3->8,3x3,dilation=2").find("a filter of 3 x 3, dilated to 5 x 5, does not fit in an image of 4 x 4"),
            std::string::npos);
  EXPECT_NE(said_of("2147483647x9x9x3->2147483647,3x3").find("ask for fewer"), std::string::npos);
}

TEST(Literals, ProductsThatNobodyCountsAreRefused) {
  EXPECT_NE(refusal([] { (void)layer_of({"--layer", "2147483647<-2147483647@2147483647"}); }).find("ask for fewer"), std::string::npos);
  EXPECT_NE(refusal([] { (void)gemm_of({"--gemm", "2147483647x2147483647x2147483647"}); }).find("--gemm 2147483647x"), std::string::npos);
}

TEST(Literals, OneSizeOfALayerOrAGemmIsSwept) {
  const SweptLayer gemms = swept_gemm_of({"--gemm", "2304x8:24:8x4096"});
  EXPECT_EQ(gemms.axis, "N");
  EXPECT_EQ(gemms.at, (std::vector<std::int64_t>{8, 16, 24}));
  ASSERT_EQ(gemms.layers.size(), 3U);
  EXPECT_EQ(gemms.layers[1].text(), "2304<-4096@16");
  EXPECT_EQ(swept_gemm_of({"--gemm", "1:2:1x3x4"}).axis, "M");
  EXPECT_EQ(swept_gemm_of({"--gemm", "2x3x1:2:1"}).axis, "K");
  const SweptLayer layers = swept_layer_of({"--layer", "1024<-64:128:64@7"});
  EXPECT_EQ(layers.axis, "in");
  EXPECT_EQ(layers.layers.back().text(), "1024<-128@7");
  EXPECT_EQ(swept_layer_of({"--layer", "1:1:1<-2@3"}).axis, "out");
  EXPECT_EQ(swept_layer_of({"--layer", "1<-2@3:4:1"}).axis, "tokens");
  for (const char* wrong :
       {"", "x", "2304x8x4096", "1:2:1x1:2:1x4", "8:16:8x4", "axb:2:1xc", "3x0:2:1x4", "3x5:2:1x4", "3x1:2x4", "3x1:2:1x4x5"}) {
    EXPECT_THROW(swept_gemm_of({"--gemm", wrong}), InputError) << wrong;
  }
  for (const char* wrong : {"", "1<-2@3", "1<-2:3:1", "1@2<-3:4:1", "1<-1:2:1@0"})
    EXPECT_THROW(swept_layer_of({"--layer", wrong}), InputError) << wrong;
}

}  // namespace
}  // namespace tilewave
