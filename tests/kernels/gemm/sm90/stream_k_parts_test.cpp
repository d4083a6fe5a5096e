#include "kernels/gemm/sm90/stream_k_parts.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <vector>

namespace tilewave {
namespace {

std::vector<StreamKSlice> parts_of(const StreamKWork& work, int block) {
  std::vector<StreamKSlice> all;
  StreamKSlices k_slices(work, block);
  for (StreamKSlice k_slice; k_slices.next(k_slice);) all.push_back(k_slice);
  return all;
}

bool is_shared(const StreamKWork& work, const StreamKSlice& k_slice) { return k_slice.tile >= work.tiles - work.stream_k_tiles; }

// Columns of tiles, of which the first sums, in one band; and none that sums.
StreamKWork work_of(int tiles, int stream_k_tiles, int k_tiles, int group, bool sums) {
  return StreamKWork::of(tiles, stream_k_tiles, k_tiles, std::min(132, tiles * k_tiles), group, sums);
}

std::vector<StreamKWork> works() {
  std::vector<StreamKWork> all;
  for (const bool sums : {false, true}) {
    for (const int k_tiles : {1, 2, 3, 64, 1024}) {
      all.push_back(work_of(72, 72, k_tiles, 3, sums));
      all.push_back(work_of(1179, 255, k_tiles, 3, sums));
      all.push_back(work_of(200, 200, k_tiles, 8, sums));
      all.push_back(work_of(132, 0, k_tiles, 4, sums));
      all.push_back(work_of(5, 5, k_tiles, 1, sums));
    }
  }
  return all;
}

TEST(StreamKSlices, AreEveryTilesKOnce) {
  for (const StreamKWork& work : works()) {
    std::vector<int> times(static_cast<std::size_t>(work.tiles * work.k_tiles));
    for (int block = 0; block < work.blocks; ++block) {
      for (const StreamKSlice& k_slice : parts_of(work, block)) {
        ASSERT_LT(k_slice.begin, k_slice.end);
        ASSERT_LE(k_slice.end, work.k_tiles);
        ASSERT_GE(k_slice.start, k_slice.begin);
        ASSERT_LT(k_slice.start, k_slice.end);
        int k = k_slice.start;
        for (int left = k_slice.end - k_slice.begin; left > 0; --left, k = k_slice.after(k)) {
          ++times.at(static_cast<std::size_t>(k_slice.tile * work.k_tiles + k));
        }
      }
    }
    EXPECT_TRUE(std::all_of(times.begin(), times.end(), [](int n) { return n == 1; })) << work.tiles << " tiles of " << work.k_tiles;
  }
}

TEST(StreamKSlices, ShareTheTimeEqually) {
  const auto time_of = [](const StreamKWork& work, int block) {
    int time = 0;
    for (const StreamKSlice& k_slice : parts_of(work, block)) {
      if (is_shared(work, k_slice)) time += static_cast<int>((k_slice.end - k_slice.begin) * work.time_of(k_slice.tile));
    }
    return time;
  };
  for (const StreamKWork& work : works()) {
    int least = time_of(work, 0), most = least;
    for (int block = 1; block < work.blocks; ++block) {
      const int time = time_of(work, block);
      least = std::min(least, time), most = std::max(most, time);
    }
    EXPECT_LE(most - least, 2 * kStreamKSummingTime) << work.tiles << " tiles of " << work.k_tiles;
  }
}

// So nobody waits for a block that waits for it, and a block leaves the sums of one part at most.
TEST(StreamKSlices, EndATileWhereTheBlocksBeforeHaveItsOtherParts) {
  for (const StreamKWork& work : works()) {
    std::vector<std::vector<int>> blocks_of(static_cast<std::size_t>(work.tiles));
    for (int block = 0; block < work.blocks; ++block) {
      bool first = true;
      for (const StreamKSlice& k_slice : parts_of(work, block)) {
        std::vector<int>& blocks = blocks_of.at(static_cast<std::size_t>(k_slice.tile));
        if (is_shared(work, k_slice)) {
          EXPECT_TRUE(first || k_slice.end == work.k_tiles) << "a part that another block waits for comes first";
          first = false;
        }
        if (k_slice.end < work.k_tiles) {
          EXPECT_EQ(k_slice.partials, 0);
        } else {
          std::vector<int> before;
          for (int other = block - k_slice.partials; other < block; ++other) before.push_back(other);
          EXPECT_EQ(blocks, before) << "tile " << k_slice.tile << " of " << work.tiles << " of " << work.k_tiles;
        }
        blocks.push_back(block);
      }
    }
  }
}

// In how many places of K all blocks are at a time, within a hundredth of a tile's K.
int places_at(const StreamKWork& work, int time, bool in_step) {
  std::vector<int> at;
  for (int block = 0; block < work.blocks; ++block) {
    int left = time;
    for (const StreamKSlice& k_slice : parts_of(work, block)) {
      if (!is_shared(work, k_slice)) continue;
      const int length = k_slice.end - k_slice.begin, each = static_cast<int>(work.time_of(k_slice.tile));
      if (left < length * each) {
        at.push_back(k_slice.begin + ((in_step ? k_slice.start - k_slice.begin : 0) + left / each) % length);
        break;
      }
      left -= length * each;
    }
  }
  std::sort(at.begin(), at.end());
  int places = 0, last = -work.k_tiles;
  for (const int k : at) {
    if (k - last > work.k_tiles / 100) ++places;
    last = k;
  }
  return places;
}

TEST(StreamKSlices, ReadKInFewPlaces) {
  for (const StreamKWork& work :
       {work_of(54, 54, 1024, 3, false), work_of(72, 72, 1024, 3, false), work_of(72, 72, 1024, 3, true), work_of(100, 100, 512, 8, false),
        work_of(200, 200, 512, 8, false), work_of(218, 218, 512, 8, false), work_of(1179, 255, 1024, 3, false)}) {
    int places = 0, from_the_beginning = 0, moments = 0;
    const int all = kStreamKTime * work.stream_k_tiles * work.k_tiles / work.blocks;
    for (int time = all / 50; time < all; time += all / 50, ++moments) {
      places += places_at(work, time, true);
      from_the_beginning += places_at(work, time, false);
    }
    const bool one_speed = work.summing_time == kStreamKTime;  // of two, the slower falls behind the faster within a part
    EXPECT_LE(places, (one_speed ? 4 : 6) * moments) << work.stream_k_tiles << " tiles";
    EXPECT_LE(places, (one_speed ? 0.5 : 0.8) * from_the_beginning) << work.stream_k_tiles << " tiles";
  }
}

}  // namespace
}  // namespace tilewave
