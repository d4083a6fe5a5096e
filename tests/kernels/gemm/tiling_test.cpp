// The guide's worked numbers on tiles and waves, and the same arithmetic for an H200.
#include "kernels/gemm/tiling.h"

#include <gtest/gtest.h>

namespace tilewave {
namespace {

constexpr Tile k256x128 = {.m = 256, .n = 128};

// "Matrix multiplication background", figure 6: 256 x 256 against 256 x 257 outputs in tiles of 128 x 128.
TEST(Tiling, OneColumnTooManyCostsAColumnOfTiles) {
  const Tile tile = {.m = 128, .n = 128};
  const Tiling exact = tile_waves(256, 256, tile, 1), past = tile_waves(256, 257, tile, 1);
  EXPECT_EQ(exact.tiles, 4);
  EXPECT_EQ(past.tiles, 6);
  EXPECT_DOUBLE_EQ(static_cast<double>(past.tiles) / static_cast<double>(exact.tiles), 1.5);
  EXPECT_NEAR(257.0 / 256.0 - 1.0, 0.0039, 1e-5);
  EXPECT_DOUBLE_EQ(exact.useful_fraction, 1.0);
  EXPECT_DOUBLE_EQ(past.useful_fraction, 257.0 / 384.0);
}

// Section 3.1: M = 27648 in tiles of 256 x 128; at N = 136 the second column of tiles holds 8 of 128.
TEST(Tiling, TileQuantization) {
  EXPECT_EQ(tile_waves(27648, 128, k256x128, 108).tiles_n, 1);
  for (std::int64_t n = 136; n <= 256; n += 8) EXPECT_EQ(tile_waves(27648, n, k256x128, 108).tiles_n, 2) << n;
  EXPECT_EQ(tile_waves(27648, 264, k256x128, 108).tiles_n, 3);
  EXPECT_DOUBLE_EQ(tile_waves(27648, 136, k256x128, 108).useful_fraction, (1.0 + 0.0625) / 2.0);
  // The deep learning performance guide's section 5.2.1: the same steps on a V100, M = 20480.
  EXPECT_EQ(tile_waves(20480, 128, k256x128, 80).tiles_n, 1);
  EXPECT_EQ(tile_waves(20480, 136, k256x128, 80).tiles_n, 2);
  EXPECT_EQ(tile_waves(20480, 256, k256x128, 80).tiles_n, 2);
}

// Section 3.2: an A100's 108 SMs, M = 2304; and section 5.2.2 of the performance guide: a V100's 80 SMs, M = 1280.
TEST(Tiling, WaveQuantization) {
  const Tiling full = tile_waves(2304, 1536, k256x128, 108);
  EXPECT_EQ(full.tiles_m, 9);
  EXPECT_EQ(full.tiles_n, 12);
  EXPECT_EQ(full.tiles, 108);
  EXPECT_EQ(full.full_waves, 1);
  EXPECT_EQ(full.tail_tiles, 0);
  EXPECT_DOUBLE_EQ(full.tail_utilization, 1.0);
  EXPECT_DOUBLE_EQ(full.wave_efficiency, 1.0);
  for (const std::int64_t n : {1537, 1664}) {
    const Tiling tail = tile_waves(2304, n, k256x128, 108);
    EXPECT_EQ(tail.tiles, 117);
    EXPECT_EQ(tail.tail_tiles, 9);
    EXPECT_NEAR(tail.tail_utilization, 0.0833, 5e-5);
    EXPECT_DOUBLE_EQ(tail.wave_efficiency, 117.0 / 216.0);
  }
  for (const std::int64_t n : {1536, 3072, 4608, 6144}) {
    const Tiling before = tile_waves(2304, n, k256x128, 108), after = tile_waves(2304, n + 1, k256x128, 108);
    EXPECT_EQ(before.tail_tiles, 0) << n;
    EXPECT_EQ(before.full_waves, n / 1536);
    EXPECT_EQ(after.tail_tiles, 9) << n;
  }

  EXPECT_EQ(tile_waves(1280, 2048, k256x128, 80).tiles, 80);
  EXPECT_EQ(tile_waves(1280, 2176, k256x128, 80).tiles, 85);
  EXPECT_DOUBLE_EQ(tile_waves(1280, 2176, k256x128, 80).tail_utilization, 0.0625);
  for (const std::int64_t n : {2048, 4096, 6144, 8192}) {
    EXPECT_EQ(tile_waves(1280, n, k256x128, 80).tail_tiles, 0) << n;
    EXPECT_EQ(tile_waves(1280, n + 1, k256x128, 80).tail_tiles, 5) << n;
  }
}

// Figures 5 (6912 x 2048 on an A100: four waves) and 8 (1280 x 2040 on a V100: one), figure 3 (12 blocks on 8 SMs).
TEST(Tiling, FiguresOfTheGuide) {
  EXPECT_EQ(tile_waves(6912, 2048, k256x128, 108).tiles, 432);
  EXPECT_DOUBLE_EQ(tile_waves(6912, 2048, k256x128, 108).waves, 4.0);
  EXPECT_DOUBLE_EQ(tile_waves(1280, 2040, k256x128, 80).waves, 1.0);
  EXPECT_EQ(tile_waves(512, 512, {.m = 64, .n = 64}, 1).tiles, 8 * tile_waves(512, 512, k256x128, 1).tiles);

  const Tiling twelve = tile_waves(12, 1, {.m = 1, .n = 1}, 8);
  EXPECT_EQ(twelve.full_waves, 1);
  EXPECT_EQ(twelve.tail_tiles, 4);
  EXPECT_DOUBLE_EQ(twelve.tail_utilization, 0.5);
  EXPECT_DOUBLE_EQ(twelve.waves, 1.5);
}

// The Transformer's feed-forward layer, 4096 out: 16 tiles high. On a V100 whole waves come every 5 x 128 tokens.
TEST(Tiling, WaveFreeBatches) {
  for (const std::int64_t n : {1, 2, 4, 8}) EXPECT_EQ(tile_waves(4096, n * 640, k256x128, 80).full_waves, n);
  EXPECT_DOUBLE_EQ(tile_waves(4096, 2560, k256x128, 80).wave_efficiency, 1.0);
  EXPECT_EQ(tile_waves(4096, 4096, k256x128, 80).tiles, 512);
  EXPECT_DOUBLE_EQ(tile_waves(4096, 4096, k256x128, 80).waves, 6.4);
  EXPECT_DOUBLE_EQ(tile_waves(4096, 5120, k256x128, 80).waves, 8.0);

  // An H200's 132 SMs: every 33 x 128 tokens; the guide's wave-free 2560 is the bad one here.
  for (const std::int64_t tokens : {4224, 8448}) EXPECT_EQ(tile_waves(4096, tokens, k256x128, 132).tail_tiles, 0) << tokens;
  for (const std::int64_t tokens : {2048, 4096, 5120, 16384}) {
    EXPECT_NEAR(tile_waves(4096, tokens, k256x128, 132).wave_efficiency, 0.970, 5e-4) << tokens;
  }
  const Tiling guide = tile_waves(4096, 2560, k256x128, 132);
  EXPECT_EQ(guide.tiles, 320);
  EXPECT_NEAR(guide.waves, 2.42, 5e-3);
  EXPECT_NEAR(guide.wave_efficiency, 0.808, 5e-4);
  EXPECT_NEAR(1.0 / tile_waves(4096, 4096, k256x128, 132).wave_efficiency - 1.0, 0.031, 5e-4);
  const Tiling wide = tile_waves(4096, 4224, {.m = 128, .n = 256}, 132);
  EXPECT_EQ(wide.tiles, 544);
  EXPECT_NEAR(wide.waves, 4.12, 5e-3);
  EXPECT_NEAR(wide.wave_efficiency, 0.82, 5e-3);
}

TEST(Tiling, IsAConstantWhereAsked) {
  static_assert(tile_waves(256, 257, {.m = 128, .n = 128}, 8).tiles == 6, "tile arithmetic works at compile time");
  static_assert(round_up(33708, 8) == 33712 && ceil_div(33708, 8) == 4214, "the guide's vocabulary, padded");
  EXPECT_EQ(round_up(33708, 8) - 33708, 4);
}

}  // namespace
}  // namespace tilewave
