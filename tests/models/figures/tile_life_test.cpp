// What a CTA does from tile to tile follows from a ring and from who waits for whom.
#include "models/figures/tile_life.h"

#include <gtest/gtest.h>

#include "kernels/core/device_profiles.h"

namespace tilewave {
namespace {

const LifeLane& lane(const TileLife& life, std::string_view label) {
  for (const LifeLane& one : life.lanes) {
    if (one.label == label) return one;
  }
  ADD_FAILURE() << life.title << " has no lane " << label;
  return life.lanes.front();
}

TEST(TileLife, NothingComesBeforeWhatItNeeds) {
  const std::vector<TileLife> lives = tile_lives(device_profile("h200").device);
  ASSERT_EQ(lives.size(), 3U);
  for (const TileLife& life : lives) {
    const LifeLane& loads = lane(life, "TMA");
    EXPECT_EQ(loads.spans.size(), 3U * 16U) << life.title;
    for (const LifeSpan& load : loads.spans) EXPECT_GT(load.end_cycles, load.begin_cycles);
    double tensor_cores = 0.0;  // one tile's MMAs after the other's, whoever asks for them
    for (std::int64_t tile = 0; tile < 3; ++tile) {
      for (const LifeLane& one : life.lanes) {
        for (const LifeSpan& span : one.spans) {
          if (span.part != LifePart::mma || span.tile != tile) continue;
          EXPECT_GE(span.begin_cycles, tensor_cores) << life.title << ", tile " << tile;
          EXPECT_GE(span.begin_cycles, loads.spans[static_cast<std::size_t>(tile) * 16].end_cycles);
          tensor_cores = span.end_cycles;
        }
      }
    }
    for (const LifeLane& one : life.lanes) {
      double free_at = 0.0;
      for (const LifeSpan& span : one.spans) {
        if (span.part == LifePart::load) continue;
        EXPECT_GE(span.begin_cycles, free_at - 1e-9) << life.title << ", " << span.label;
        free_at = span.end_cycles;
      }
    }
  }
}

// The tensor cores wait for the epilogue, for the packing alone, or for nobody.
TEST(TileLife, SchedulesDifferInWhatMmasWaitFor) {
  const std::vector<TileLife> lives = tile_lives(device_profile("h200").device);
  ASSERT_EQ(lives.size(), 3U);
  const auto gap = [](const LifeSpan& before, const LifeSpan& after) { return after.begin_cycles - before.end_cycles; };
  const auto mmas = [](const TileLife& life, std::int64_t tile) {
    for (const LifeLane& one : life.lanes) {
      for (const LifeSpan& span : one.spans) {
        if (span.part == LifePart::mma && span.tile == tile) return span;
      }
    }
    return LifeSpan{};
  };
  const double waits = gap(mmas(lives[0], 0), mmas(lives[0], 1)), packs = gap(mmas(lives[1], 0), mmas(lives[1], 1)),
               turns = gap(mmas(lives[2], 0), mmas(lives[2], 1));
  EXPECT_GT(waits, packs);
  EXPECT_GT(packs, turns);
  EXPECT_NEAR(turns, 0.0, 1e-6);
}

TEST(TileLife, IsHoppersAlone) {
  EXPECT_TRUE(tile_lives(device_profile("a100").device).empty());
  EXPECT_TRUE(tile_lives(device_profile("t4").device).empty());
}

}  // namespace
}  // namespace tilewave
