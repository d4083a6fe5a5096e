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

#include <algorithm>
#include <cstdint>

#include "kernels/core/host_device.h"

namespace tilewave {

// The time of a block of K, in a tile whose rows are summed too and in any other: an instruction with 8 columns of ones beside one with
// 256 of the tile's reads as many rows of shared memory, an eighth of all it reads.
inline constexpr int kStreamKSummingTime = 9, kStreamKTime = 8;

inline constexpr int kStreamKMostBlocks = 144;  // as many as the largest Hopper GPU has SMs

// Where a block's share begins, in the raster's order.
struct alignas(16) StreamKShare {
  int tile = 0, begin = 0;  // of the tile's K, in blocks of it
  int start = 0;            // the first block of K to be loaded of a part that ends within this tile
  int others = 0;           // the blocks before this one that have what comes before that in this tile
};

// Computed by the host: in the kernel its divisions, one waiting for the other, would hold up each block's first load.
struct StreamKWork {
  int tiles = 0, shared_tiles = 0;  // in the raster's order; the last ones' K is shared out
  int blocks_k = 0;                 // a tile's K, in blocks of it
  int blocks = 1;                   // that multiply, at most as many as have something to do
  int band = 1, summing_time = kStreamKTime;
  int beat = 1;                                 // the length of a share, a tile's K at most
  StreamKShare shares[kStreamKMostBlocks + 1];  // and where the last one ends

  // Of a block of a tile's K: with summed rows the first tile of each `band` takes longer.
  std::int64_t time_of(int tile) const { return tile % band == 0 ? summing_time : kStreamKTime; }

  // Shares take the same time; where they are shorter than two blocks of K, they are equal in length instead, so that none is empty.
  static StreamKWork of(int tiles, int shared_tiles, int blocks_k, int blocks, int band, bool sums) {
    const std::int64_t all = std::int64_t{shared_tiles} * blocks_k;
    StreamKWork work = {.tiles = tiles,
                        .shared_tiles = shared_tiles,
                        .blocks_k = blocks_k,
                        .blocks = blocks,
                        .band = band,
                        .summing_time = sums && all / blocks >= 2 ? kStreamKSummingTime : kStreamKTime,
                        .beat = static_cast<int>(std::clamp<std::int64_t>((all + blocks - 1) / blocks, 1, blocks_k))};
    std::int64_t total = 0, before = 0;  // the time of all shared tiles, and of those before share.tile
    for (int tile = tiles - shared_tiles; tile < tiles; ++tile) total += work.time_of(tile) * blocks_k;
    StreamKShare share = {.tile = tiles - shared_tiles};
    for (int i = 0; i <= blocks; ++i) {
      const int tile_before = share.tile;
      const std::int64_t time = total * i / blocks;
      const auto tile_time = [&] { return work.time_of(share.tile) * blocks_k; };
      for (; share.tile < tiles && time >= before + tile_time(); ++share.tile) before += tile_time();
      share.begin = static_cast<int>((time - before) / work.time_of(share.tile));
      share.start = (share.begin + work.beat - 1) / work.beat * work.beat;
      share.others = share.begin == 0 ? 0 : share.tile == tile_before ? share.others + 1 : 1;
      work.shares[i] = share;
    }
    return work;
  }
};

struct StreamKPart {
  int tile = 0, begin = 0, end = 0;  // of K, in blocks of it
  int start = 0;                     // the first to be loaded
  int others = 0;                    // where it ends the tile: the blocks before this one that have the tile's other parts

  // The one to be loaded after that one.
  TW_HOST_DEVICE int after(int block) const { return block + 1 == end ? begin : block + 1; }
};

class StreamKParts {
 public:
  TW_HOST_DEVICE StreamKParts(const StreamKWork& work, int block)
      : work_(work), whole_(block), whole_tiles_(work.tiles - work.shared_tiles), share_(work.shares[block]) {
    const StreamKShare end = work.shares[block + 1];
    tile_ = end.begin > 0 ? end.tile : end.tile - 1;
    end_ = end.begin > 0 ? end.begin : work.blocks_k;
  }

  // The next part, if there is one: whole tiles, one for each block in turn, and then the share.
  TW_HOST_DEVICE bool next(StreamKPart& part) {
    if (whole_ < whole_tiles_) {
      part = {.tile = whole_, .end = work_.blocks_k};
      whole_ += work_.blocks;
      return true;
    }
    if (tile_ < share_.tile) return false;
    const bool is_last = tile_ == share_.tile, ends_tile = end_ == work_.blocks_k;
    const int begin = is_last ? share_.begin : 0, in_step = begin > 0 ? share_.start : done_;
    part = {.tile = tile_,
            .begin = begin,
            .end = end_,
            .start = (is_last && ends_tile) || in_step >= end_ ? begin : in_step,
            .others = is_last && ends_tile ? share_.others : 0};
    done_ += end_ - begin;
    if (done_ >= work_.beat) done_ -= work_.beat;
    --tile_;
    end_ = work_.blocks_k;
    return true;
  }

 private:
  const StreamKWork& work_;
  int whole_, whole_tiles_;  // the next whole tile
  StreamKShare share_;
  int tile_, end_;  // of the share, what is left ends here
  int done_ = 0;    // how much of it has been handed out, modulo the beat
};

}  // namespace tilewave
