// Tile and wave arithmetic of the guide, exact and at compile time where asked: how many tiles cover an output, how many
// waves of them the device runs, how full the last wave is, and which fraction of the tiles' area is the output's.
#pragma once

#include <cstdint>

namespace tilewave {

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
constexpr std::int64_t round_up(std::int64_t value, std::int64_t multiple) { return ceil_div(value, multiple) * multiple; }

struct Tile {
  std::int64_t m = 0, n = 0;

  friend bool operator==(const Tile&, const Tile&) = default;
};

struct Tiling {
  std::int64_t tiles_m = 0, tiles_n = 0;
  std::int64_t tiles = 0;
  std::int64_t slots = 0;  // tiles that run at a time: SMs x blocks per SM, or a CPU's threads
  double waves = 0.0;      // tiles / slots
  std::int64_t full_waves = 0;
  std::int64_t tail_tiles = 0;    // of the last, partial wave; 0 where every wave is full
  double tail_utilization = 1.0;  // tail_tiles / slots, 1 where there is no tail
  double wave_efficiency = 1.0;   // waves / whole waves: tile quantization apart, what wave quantization leaves
  double useful_fraction = 1.0;   // m n / (tiles x tile area): what tile quantization leaves
};

// m x n outputs in tiles, `slots` tiles at a time; all > 0.
constexpr Tiling tile_waves(std::int64_t m, std::int64_t n, Tile tile, std::int64_t slots) {
  Tiling t;
  t.tiles_m = ceil_div(m, tile.m);
  t.tiles_n = ceil_div(n, tile.n);
  t.tiles = t.tiles_m * t.tiles_n;
  t.slots = slots;
  t.waves = static_cast<double>(t.tiles) / static_cast<double>(slots);
  t.full_waves = t.tiles / slots;
  t.tail_tiles = t.tiles % slots;
  t.tail_utilization = t.tail_tiles == 0 ? 1.0 : static_cast<double>(t.tail_tiles) / static_cast<double>(slots);
  t.wave_efficiency = t.waves / static_cast<double>(ceil_div(t.tiles, slots));
  t.useful_fraction = static_cast<double>(m) * static_cast<double>(n) /
                      (static_cast<double>(t.tiles) * static_cast<double>(tile.m) * static_cast<double>(tile.n));
  return t;
}

}  // namespace tilewave
