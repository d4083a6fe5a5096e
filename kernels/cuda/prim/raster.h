// The order in which tiles are taken. Blocks that run at the same time should share what they read: tiles go down a band of
// columns of D, band after band, so that the tiles of a wave make a patch nearly as high as wide, whose operands stay in L2.
#pragma once

namespace tilewave {

struct TileAt {
  int m = 0, n = 0;
};

struct Raster {
  int tiles_m = 0, tiles_n = 0;
  int band = 1;  // tiles along M

  __device__ __forceinline__ TileAt operator()(int index) const {
    const int before = index / (band * tiles_n) * band, width = min(band, tiles_m - before), within = index % (band * tiles_n);
    return {.m = before + within % width, .n = within / width};
  }
};

}  // namespace tilewave
