// Every tile once, whole ones in neighbours, and threads that have about as much to do.
#include "kernels/gemm/facts/tile_shares.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>
#include <vector>

namespace tilewave {
namespace {

std::int64_t outputs_of(const TileShares& shares, std::int64_t thread) {
  std::int64_t outputs = 0;
  for (std::size_t kind = 0; kind < TileShares::kKinds; ++kind) outputs += shares.taken(thread)[kind] * shares.kinds()[kind].outputs();
  return outputs;
}

TEST(TileShares, DealsEveryTileOnce) {
  for (const std::int64_t threads : {1, 2, 3, 16}) {
    for (const std::int64_t parts : {1, 4}) {
      for (const std::int64_t i : {1, 64, 65, 1000}) {
        for (const std::int64_t j : {7, 96, 4000}) {
          const TileGrid grid{.i = i, .j = j, .tile_i = 64, .tile_j = 96, .parts = parts};
          const TileShares shares(grid, threads);
          std::vector<std::int64_t> order = shares.order();
          const std::vector<std::int64_t> ends = shares.ends();
          ASSERT_EQ(std::ssize(ends), threads);
          EXPECT_TRUE(std::ranges::is_sorted(ends));
          EXPECT_EQ(ends.back(), grid.tiles());
          std::ranges::sort(order);
          std::vector<std::int64_t> all(static_cast<std::size_t>(grid.tiles()));
          std::iota(all.begin(), all.end(), 0);
          EXPECT_EQ(order, all) << i << "x" << j << " in " << parts << " parts on " << threads;
          std::int64_t outputs = 0;
          for (std::int64_t t = 0; t < threads; ++t) outputs += outputs_of(shares, t);
          EXPECT_EQ(outputs, parts * i * j);
        }
      }
    }
  }
}

// 2048 x 2048 in tiles of 512 x 1536: four are whole, four a third as large. In the order of their numbers two threads would have
// four whole ones and four others, and the second one would wait.
TEST(TileShares, RaggedTilesComeOutEven) {
  const TileShares columns({.i = 2048, .j = 2048, .tile_i = 512, .tile_j = 1536}, 2);
  EXPECT_EQ(outputs_of(columns, 0), outputs_of(columns, 1));
  EXPECT_EQ(columns.order(), (std::vector<std::int64_t>{0, 1, 4, 5, 2, 3, 6, 7}));
  EXPECT_EQ(columns.ends(), (std::vector<std::int64_t>{4, 8}));
  EXPECT_DOUBLE_EQ(columns.largest_share(), 0.5);
  // Ragged both ways, of four sizes: 786,432, 524,288, 393,216 and 262,144 outputs.
  const TileShares both({.i = 768, .j = 4096, .tile_i = 512, .tile_j = 1536}, 2);
  EXPECT_DOUBLE_EQ(both.largest_share(), 0.5);
  EXPECT_EQ(both.largest({1.0, 1.0, 1.0, 1.0}), 3.0);
}

// As many neighbours as other loops give each thread, so that it meets the tokens that its caches hold.
TEST(TileShares, WholeTilesLieAsInOtherLoops) {
  const TileShares shares({.i = 128, .j = 960, .tile_i = 64, .tile_j = 96}, 4);
  EXPECT_EQ(shares.ends(), (std::vector<std::int64_t>{5, 10, 15, 20}));
  EXPECT_TRUE(std::ranges::is_sorted(shares.order()));
}

// A tile that is larger than D is ragged alone; a thread may have nothing to do.
TEST(TileShares, OneTileForMoreThreads) {
  const TileShares shares({.i = 40, .j = 50, .tile_i = 64, .tile_j = 96}, 3);
  EXPECT_EQ(shares.order(), std::vector<std::int64_t>{0});
  EXPECT_EQ(shares.ends().back(), 1);
  EXPECT_DOUBLE_EQ(shares.largest_share(), 1.0);
}

}  // namespace
}  // namespace tilewave
