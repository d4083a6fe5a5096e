#include "kernels/gemm/rows/stream_k_parts.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <vector>

namespace tilewave {
namespace {

std::vector<StreamKPart> parts_of(const StreamKWork& work, int block) {
  std::vector<StreamKPart> all;
  StreamKParts parts(work, block);
  for (StreamKPart part; parts.next(part);) all.push_back(part);
  return all;
}

bool is_shared(const StreamKWork& work, const StreamKPart& part) { return part.tile >= work.tiles - work.shared_tiles; }

// Columns of tiles, of which the first sums, in one band; and none that sums.
StreamKWork work_of(int tiles, int shared_tiles, int blocks_k, int band, bool sums) {
  return StreamKWork::of(tiles, shared_tiles, blocks_k, std::min(132, tiles * blocks_k), band, sums);
}

std::vector<StreamKWork> works() {
  std::vector<StreamKWork> all;
  for (const bool sums : {false, true}) {
    for (const int blocks_k : {1, 2, 3, 64, 1024}) {
      all.push_back(work_of(72, 72, blocks_k, 3, sums));
      all.push_back(work_of(1179, 255, blocks_k, 3, sums));
      all.push_back(work_of(200, 200, blocks_k, 8, sums));
      all.push_back(work_of(132, 0, blocks_k, 4, sums));
      all.push_back(work_of(5, 5, blocks_k, 1, sums));
    }
  }
  return all;
}

TEST(StreamKParts, AreEveryTilesKOnce) {
  for (const StreamKWork& work : works()) {
    std::vector<int> times(static_cast<std::size_t>(work.tiles * work.blocks_k));
    for (int block = 0; block < work.blocks; ++block) {
      for (const StreamKPart& part : parts_of(work, block)) {
        ASSERT_LT(part.begin, part.end);
        ASSERT_LE(part.end, work.blocks_k);
        ASSERT_GE(part.start, part.begin);
        ASSERT_LT(part.start, part.end);
        int k = part.start;
        for (int left = part.end - part.begin; left > 0; --left, k = part.after(k)) {
          ++times.at(static_cast<std::size_t>(part.tile * work.blocks_k + k));
        }
      }
    }
    EXPECT_TRUE(std::all_of(times.begin(), times.end(), [](int n) { return n == 1; })) << work.tiles << " tiles of " << work.blocks_k;
  }
}

TEST(StreamKParts, ShareTheTimeEqually) {
  const auto time_of = [](const StreamKWork& work, int block) {
    int time = 0;
    for (const StreamKPart& part : parts_of(work, block)) {
      if (is_shared(work, part)) time += static_cast<int>((part.end - part.begin) * work.time_of(part.tile));
    }
    return time;
  };
  for (const StreamKWork& work : works()) {
    int least = time_of(work, 0), most = least;
    for (int block = 1; block < work.blocks; ++block) {
      const int time = time_of(work, block);
      least = std::min(least, time), most = std::max(most, time);
    }
    EXPECT_LE(most - least, 2 * kStreamKSummingTime) << work.tiles << " tiles of " << work.blocks_k;
  }
}

// So nobody waits for a block that waits for it, and a block leaves the sums of one part at most.
TEST(StreamKParts, EndATileWhereTheBlocksBeforeHaveItsOtherParts) {
  for (const StreamKWork& work : works()) {
    std::vector<std::vector<int>> blocks_of(static_cast<std::size_t>(work.tiles));
    for (int block = 0; block < work.blocks; ++block) {
      bool first = true;
      for (const StreamKPart& part : parts_of(work, block)) {
        std::vector<int>& blocks = blocks_of.at(static_cast<std::size_t>(part.tile));
        if (is_shared(work, part)) {
          EXPECT_TRUE(first || part.end == work.blocks_k) << "a part that another block waits for comes first";
          first = false;
        }
        if (part.end < work.blocks_k) {
          EXPECT_EQ(part.others, 0);
        } else {
          std::vector<int> before;
          for (int other = block - part.others; other < block; ++other) before.push_back(other);
          EXPECT_EQ(blocks, before) << "tile " << part.tile << " of " << work.tiles << " of " << work.blocks_k;
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
    for (const StreamKPart& part : parts_of(work, block)) {
      if (!is_shared(work, part)) continue;
      const int length = part.end - part.begin, each = static_cast<int>(work.time_of(part.tile));
      if (left < length * each) {
        at.push_back(part.begin + ((in_step ? part.start - part.begin : 0) + left / each) % length);
        break;
      }
      left -= length * each;
    }
  }
  std::sort(at.begin(), at.end());
  int places = 0, last = -work.blocks_k;
  for (const int k : at) {
    if (k - last > work.blocks_k / 100) ++places;
    last = k;
  }
  return places;
}

TEST(StreamKParts, ReadKInFewPlaces) {
  for (const StreamKWork& work :
       {work_of(54, 54, 1024, 3, false), work_of(72, 72, 1024, 3, false), work_of(72, 72, 1024, 3, true), work_of(100, 100, 512, 8, false),
        work_of(200, 200, 512, 8, false), work_of(218, 218, 512, 8, false), work_of(1179, 255, 1024, 3, false)}) {
    int places = 0, from_the_beginning = 0, moments = 0;
    const int all = kStreamKTime * work.shared_tiles * work.blocks_k / work.blocks;
    for (int time = all / 50; time < all; time += all / 50, ++moments) {
      places += places_at(work, time, true);
      from_the_beginning += places_at(work, time, false);
    }
    const bool one_speed = work.summing_time == kStreamKTime;  // of two, the slower falls behind the faster within a part
    EXPECT_LE(places, (one_speed ? 4 : 6) * moments) << work.shared_tiles << " tiles";
    EXPECT_LE(places, (one_speed ? 0.5 : 0.8) * from_the_beginning) << work.shared_tiles << " tiles";
  }
}

}  // namespace
}  // namespace tilewave
