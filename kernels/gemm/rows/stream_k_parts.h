// What a block of stream_k multiplies, and in which order. First whole tiles, one for each block in turn. Then its share of the K of the
// tiles that are left: a stretch that goes on from tile to tile in the raster's order, taken from its end, so that the beginning of a
// tile, which the next block waits for, comes first.
//
// Operands with a long K pass through the second-level cache once. So a part of a share does not start where it begins but where the
// other blocks are by then, if it reaches there, and goes round: after n blocks of K of its share a block is at n modulo the share's
// length, or modulo a tile's K where that is less. Only what ends a share as it ends a tile goes straight on: all these end at the same
// time. Where 132 blocks share 72 tiles, K is then read in two or three places at a time instead of six, and of 200 tiles in one or two
// instead of twelve.
#pragma once

#include <cstdint>

#include "kernels/math/host_device.h"

namespace tilewave {

// The time of a block of K, in a tile whose rows are summed too and in any other: an instruction with 8 columns of ones beside one with
// 256 of the tile's reads as many rows of shared memory, an eighth of all it reads.
inline constexpr int kStreamKSummingTime = 9, kStreamKTime = 8;

struct StreamKWork {
  int tiles = 0, shared_tiles = 0;  // in the raster's order; the last ones' K is shared out
  int blocks_k = 0;                 // a tile's K, in blocks of it
  int blocks = 1;                   // that multiply
  int band = 1;                     // tiles of the raster, the first of which takes summing_time for a block of K, the others kStreamKTime
  int summing_time = kStreamKTime;
};

struct StreamKPart {
  int tile = 0, begin = 0, end = 0;  // of K, in blocks of it
  int start = 0;                     // the first to be loaded
  int shared = -1;                   // which of the shared tiles

  // The one to be loaded after that one.
  TW_HOST_DEVICE int after(int block) const { return block + 1 == end ? begin : block + 1; }
};

class StreamKParts {
 public:
  TW_HOST_DEVICE StreamKParts(const StreamKWork& work, int block)
      : work_(work), whole_(block), whole_tiles_(work.tiles - work.shared_tiles) {
    const std::int64_t begin = begin_of_share(block), end = begin_of_share(block + 1), depth = work.blocks_k;
    last_ = static_cast<int>(begin / depth);
    begin_ = static_cast<int>(begin % depth);
    tile_ = end == begin ? last_ - 1 : static_cast<int>((end - 1) / depth);
    end_ = static_cast<int>(end - tile_ * depth);
    const std::int64_t share = (work.shared_tiles * depth + work.blocks - 1) / work.blocks;
    beat_ = static_cast<int>(share < depth ? share : depth);
  }

  // The next part, if there is one: whole tiles, one for each block in turn, and then the share.
  TW_HOST_DEVICE bool next(StreamKPart& part) {
    if (whole_ < whole_tiles_) {
      part = {.tile = whole_, .end = work_.blocks_k};
      whole_ += work_.blocks;
      return true;
    }
    if (tile_ < last_) return false;
    const int begin = tile_ == last_ ? begin_ : 0;
    const int in_step = begin + (done_ % beat_ - begin % beat_ + beat_) % beat_;
    const bool ends_all = tile_ == last_ && end_ == work_.blocks_k;
    part = {
        .tile = tile_, .begin = begin, .end = end_, .start = ends_all || in_step >= end_ ? begin : in_step, .shared = tile_ - whole_tiles_};
    done_ += end_ - begin;
    --tile_;
    end_ = work_.blocks_k;
    return true;
  }

 private:
  // In blocks of K from the raster's first tile on; all shares take the same time.
  TW_HOST_DEVICE std::int64_t begin_of_share(int share) const {
    const std::int64_t depth = work_.blocks_k, summing = work_.summing_time * depth, other = kStreamKTime * depth;
    const std::int64_t first = time_before(whole_tiles_), time = first + (time_before(work_.tiles) - first) * share / work_.blocks;
    const std::int64_t band_time = summing + (work_.band - 1) * other, bands = time / band_time, rest = time % band_time;
    return bands * work_.band * depth + (rest < summing ? rest / work_.summing_time : depth + (rest - summing) / kStreamKTime);
  }
  TW_HOST_DEVICE std::int64_t time_before(int tile) const {
    const std::int64_t depth = work_.blocks_k, summing = (tile + work_.band - 1) / work_.band;
    return (summing * work_.summing_time + (tile - summing) * kStreamKTime) * depth;
  }

  const StreamKWork& work_;
  int whole_, whole_tiles_;  // the next whole tile
  int tile_, last_;          // of the share, what is left: from tile_ down to last_
  int begin_, end_;          // where the last one begins and tile_ ends
  int beat_, done_ = 0;      // the length of a share, a tile's K at most; how much of it has been handed out
};

}  // namespace tilewave
