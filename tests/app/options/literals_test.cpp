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
