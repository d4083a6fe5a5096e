#include "kernels/gemm/facts/with_tile.h"

#include <gtest/gtest.h>
#include <vector>

namespace tilewave {
namespace {

constexpr Tile kShort[] = {{256, 128}, {128, 128}};
constexpr Tile kLonger[] = {{256, 128}, {128, 128}, {192, 96}};

template <const auto& kTiles>
std::vector<Tile> launched(Tile tile) {
  std::vector<Tile> tiles;
  with_tile<kTiles>("some_row", tile, [&]<int kM, int kN>() { tiles.push_back({kM, kN}); });
  return tiles;
}

TEST(WithTile, LaunchesTheOneThatIsAskedForAndNoOther) {
  for (const Tile tile : kLonger) EXPECT_EQ(launched<kLonger>(tile), std::vector<Tile>{tile});
}

TEST(WithTile, ATileAddedToTheListIsLaunchedAndOneThatIsNotIsRefused) {
  EXPECT_EQ(launched<kLonger>({192, 96}), (std::vector<Tile>{{192, 96}}));
  try {
    launched<kShort>({192, 96});
    FAIL() << "a tile without a kernel was taken in silence";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("some_row has no kernel for tiles of 192x96"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace tilewave
