// The tiles that NVIDIA's guide plans with, for devices that tilewave has no kernels of its own for and for exercises on paper.
// Source: Matrix Multiplication Background, section 2.3 (tiles and their order), Deep Learning Performance, figure 20 (two blocks of
// 128x128 or 256x64 an SM where 256x128 has one).
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/gemm/plan.h"

namespace tilewave {

inline constexpr Tile kGuideTiles[] = {{256, 128}, {128, 256}, {128, 128}, {256, 64}, {64, 256}, {128, 64}, {64, 128}, {64, 64}};

// As many as hold the sums of one 256x128 tile together.
constexpr std::int64_t guide_blocks_per_sm(Tile tile) {
  constexpr std::int64_t kAccumulators = 32768;  // of a 256x128 tile
  const std::int64_t blocks = kAccumulators / (tile.m * tile.n);
  return blocks < 1 ? 1 : blocks;
}

// Blocks of a tile that an SM has at a time where nobody says how many, and where that number comes from.
struct BlocksPerSm {
  std::int64_t blocks = 1;
  std::string_view source;
};
constexpr BlocksPerSm assumed_blocks_per_sm(Tile tile) {
  const auto is = [tile](std::int64_t m, std::int64_t n) { return tile == Tile{.m = m, .n = n}; };
  if (is(256, 128)) return {1, "the guide's (Matrix Multiplication Background, figure 5)"};
  if (is(128, 128) || is(256, 64)) return {2, "the guide's (Deep Learning Performance, figure 20)"};
  for (const Tile guides : kGuideTiles) {
    if (tile == guides) return {guide_blocks_per_sm(tile), "tilewave's assumption: as many as hold the sums of one 256x128 tile"};
  }
  return {1, "an assumption: the tile is none of the guide's"};
}

inline constexpr double kGuideLaunchSeconds = 5e-6;  // of a launch in the guide's tiles

// Any tile at all, `blocks_per_sm` of its blocks on an SM at a time. Predicted: waves of products at the share of the peak that the
// guide's figures reach with such tiles and alignments, or the traffic at full bandwidth, whichever takes longer.
GemmPlan plan_guide_tile(const GemmProblem& problem, Tile tile, const DeviceInfo& device, std::int64_t blocks_per_sm);

}  // namespace tilewave
