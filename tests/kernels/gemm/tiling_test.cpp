// Tiles and waves over ranges of shapes; the guide's single numbers stand in tests/models/planning/guide_numbers_test.cpp.
#include "kernels/gemm/tiling.h"

#include <gtest/gtest.h>

namespace tilewave {
namespace {

constexpr Tile k256x128 = {.m = 256, .n = 128};

// "Matrix multiplication background", section 3.1: M = 27648 in tiles of 256 x 128; at N = 136 the second column of tiles holds 8 of 128.
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

TEST(Tiling, IsAConstantWhereAsked) {
  static_assert(tile_waves(256, 257, {.m = 128, .n = 128}, 8).tiles == 6, "tile arithmetic works at compile time");
  static_assert(round_up(33708, 8) == 33712 && ceil_div(33708, 8) == 4214, "the guide's vocabulary, padded");
  EXPECT_EQ(round_up(33708, 8) - 33708, 4);
}

}  // namespace
}  // namespace tilewave
