// How a CPU's threads share out tiles: those at D's far edges may be smaller than the others, so each thread takes as many whole tiles
// as the next, neighbours, and then ragged ones, the larger first, until all have about as much to do. Shapes and the number of threads
// alone decide: what a kernel does is what its model counted.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/gemm/problem.h"
#include "kernels/gemm/tiling.h"

namespace tilewave {

// D in tiles, i its fastest dimension; with K in parts, as often as there are parts.
struct TileGrid {
  std::int64_t i = 0, j = 0;  // outputs
  std::int64_t tile_i = 0, tile_j = 0;
  std::int64_t parts = 1;

  constexpr std::int64_t tiles_i() const { return ceil_div(i, tile_i); }
  constexpr std::int64_t tiles_j() const { return ceil_div(j, tile_j); }
  constexpr std::int64_t tiles() const { return parts * tiles_i() * tiles_j(); }
};

constexpr TileGrid grid_of(const GemmProblem& problem, Tile tile, std::int64_t parts = 1) {
  if (problem.d_major == Major::n) return {.i = problem.n, .j = problem.m, .tile_i = tile.n, .tile_j = tile.m, .parts = parts};
  return {.i = problem.m, .j = problem.n, .tile_i = tile.m, .tile_j = tile.n, .parts = parts};
}

class TileShares {
 public:
  // Tiles of one size: `count_i` by `count_j` neighbours in each part.
  struct Kind {
    std::int64_t first_i = 0, first_j = 0;  // tiles
    std::int64_t count_i = 0, count_j = 0;
    std::int64_t rows = 0, columns = 0;  // outputs of one of them along i and j

    std::int64_t outputs() const { return rows * columns; }
  };
  static constexpr std::size_t kKinds = 4;

  TileShares(const TileGrid& grid, std::int64_t threads);

  const std::array<Kind, kKinds>& kinds() const { return kinds_; }
  // Tiles of each kind that a thread takes.
  const std::array<std::int64_t, kKinds>& taken(std::int64_t thread) const { return taken_[static_cast<std::size_t>(thread)]; }

  // What the thread with the most to do takes, where each kind's tile costs so much.
  double largest(const std::array<double, kKinds>& costs) const;
  // The same in outputs, as a share of all: 1 / threads where they come out even.
  double largest_share() const;

  // Every tile once, a thread's behind the one's before it; tiles count from 0, i first, then j, then parts.
  std::vector<std::int64_t> order() const;
  std::vector<std::int64_t> ends() const;  // of each thread's tiles in that order

 private:
  TileGrid grid_;
  std::array<Kind, kKinds> kinds_;  // the largest first
  std::vector<std::array<std::int64_t, kKinds>> taken_;
};

}  // namespace tilewave
