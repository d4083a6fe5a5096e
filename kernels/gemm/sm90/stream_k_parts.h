// What a block of stream_k multiplies, and in which order. First whole tiles, one for each block in turn. Then its share of the K of the
// tiles that are left: a stretch that goes on from tile to tile in the raster's order, taken from its end, so that the beginning of a
// tile, which the next block waits for, comes first.
//
// Operands with a long K pass through the second-level cache once. So a part of a share does not start where it begins but where the
// other blocks are by then, if it reaches there, and goes round: after n k_tiles of its share a block is at n modulo the share's
// length, or modulo a tile's K where that is less. Only what ends a share as it ends a tile goes straight on: all these end at the same
// time. Where 132 blocks share 72 tiles, K is then read in two or three places at a time instead of six, and of 200 tiles in one or two
// instead of twelve.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/core/host_device.h"

namespace tilewave {

// The time of a k_tile, in a tile whose rows are summed too and in any other: an instruction with 8 columns of ones beside one with
// 256 of the tile's reads as many rows of shared memory, an eighth of all it reads.
inline constexpr int kStreamKSummingTime = 9, kStreamKTime = 8;

inline constexpr int kStreamKMaxCtas = 144;  // as many as the largest Hopper GPU has SMs

// Where a block's share begins, in the raster's order.
struct alignas(16) StreamKRange {
  int tile = 0, begin = 0;  // of the tile's K, in blocks of it
  int start = 0;            // the first k_tile to be loaded of a part that ends within this tile
  int partials = 0;         // the blocks before this one that have what comes before that in this tile
};

// Computed by the host: in the kernel its divisions, one waiting for the other, would hold up each block's first load.
struct StreamKWork {
  int tiles = 0, stream_k_tiles = 0;  // in the raster's order; the last ones' K is shared out
  int k_tiles = 0;                    // a tile's K, in blocks of it
  int blocks = 1;                     // that multiply, at most as many as have something to do
  int group = 1, summing_time = kStreamKTime;
  int beat = 1;                              // the length of a share, a tile's K at most
  StreamKRange ranges[kStreamKMaxCtas + 1];  // and where the last one ends

  // Of a block of a tile's K: with summed rows the first tile of each `band` takes longer.
  std::int64_t time_of(int tile) const { return tile % group == 0 ? summing_time : kStreamKTime; }

  // Shares take the same time; where they are shorter than two k_tiles, they are equal in length instead, so that none is empty.
  static StreamKWork of(int tiles, int stream_k_tiles, int k_tiles, int blocks, int group, bool sums) {
    const std::int64_t all = std::int64_t{stream_k_tiles} * k_tiles;
    StreamKWork work = {.tiles = tiles,
                        .stream_k_tiles = stream_k_tiles,
                        .k_tiles = k_tiles,
                        .blocks = blocks,
                        .group = group,
                        .summing_time = sums && all / blocks >= 2 ? kStreamKSummingTime : kStreamKTime,
                        .beat = static_cast<int>(std::clamp<std::int64_t>((all + blocks - 1) / blocks, 1, k_tiles))};
    std::int64_t total = 0, before = 0;  // the time of all shared tiles, and of those before share.tile
    for (int tile = tiles - stream_k_tiles; tile < tiles; ++tile) total += work.time_of(tile) * k_tiles;
    StreamKRange range = {.tile = tiles - stream_k_tiles};
    for (int i = 0; i <= blocks; ++i) {
      const int tile_before = range.tile;
      const std::int64_t time = total * i / blocks;
      const auto tile_time = [&] { return work.time_of(range.tile) * k_tiles; };
      for (; range.tile < tiles && time >= before + tile_time(); ++range.tile) before += tile_time();
      range.begin = static_cast<int>((time - before) / work.time_of(range.tile));
      range.start = (range.begin + work.beat - 1) / work.beat * work.beat;
      range.partials = range.begin == 0 ? 0 : range.tile == tile_before ? range.partials + 1 : 1;
      work.ranges[i] = range;
    }
    return work;
  }
};

struct StreamKSlice {
  int tile = 0, begin = 0, end = 0;  // of K, in blocks of it
  int start = 0;                     // the first to be loaded
  int partials = 0;                  // where it ends the tile: the blocks before this one that have the tile's other parts

  // The one to be loaded after that one.
  TW_HOST_DEVICE int after(int block) const { return block + 1 == end ? begin : block + 1; }
};

class StreamKSlices {
 public:
  TW_HOST_DEVICE StreamKSlices(const StreamKWork& work, int block)
      : work_(work), whole_(block), whole_tiles_(work.tiles - work.stream_k_tiles), range_(work.ranges[block]) {
    const StreamKRange end = work.ranges[block + 1];
    tile_ = end.begin > 0 ? end.tile : end.tile - 1;
    end_ = end.begin > 0 ? end.begin : work.k_tiles;
  }

  // The next part, if there is one: whole tiles, one for each block in turn, and then the share.
  TW_HOST_DEVICE bool next(StreamKSlice& k_slice) {
    if (whole_ < whole_tiles_) {
      k_slice = {.tile = whole_, .end = work_.k_tiles};
      whole_ += work_.blocks;
      return true;
    }
    if (tile_ < range_.tile) return false;
    const bool is_last = tile_ == range_.tile, ends_tile = end_ == work_.k_tiles;
    const int begin = is_last ? range_.begin : 0, in_step = begin > 0 ? range_.start : done_;
    k_slice = {.tile = tile_,
               .begin = begin,
               .end = end_,
               .start = (is_last && ends_tile) || in_step >= end_ ? begin : in_step,
               .partials = is_last && ends_tile ? range_.partials : 0};
    done_ += end_ - begin;
    if (done_ >= work_.beat) done_ -= work_.beat;
    --tile_;
    end_ = work_.k_tiles;
    return true;
  }

 private:
  const StreamKWork& work_;
  int whole_, whole_tiles_;  // the next whole tile
  StreamKRange range_;
  int tile_, end_;  // of the share, what is left ends here
  int done_ = 0;    // how much of it has been handed out, modulo the beat
};

}  // namespace tilewave
