#include "kernels/gemm/facts/tile_shares.h"

#include <algorithm>
#include <numeric>

namespace tilewave {
namespace {

// Of `count` tiles of so many outputs to each thread: to the one that has least; among equals as neighbours lie, so that loops of as
// many indices give a thread the same ones.
std::vector<std::int64_t> deal(std::int64_t count, std::int64_t outputs, std::vector<std::int64_t>& loads) {
  const auto threads = static_cast<std::int64_t>(loads.size());
  std::vector<std::int64_t> taken(loads.size());
  if (std::ranges::all_of(loads, [&](std::int64_t load) { return load == loads.front(); })) {
    for (std::int64_t t = 0; t < threads; ++t) taken[static_cast<std::size_t>(t)] = count * (t + 1) / threads - count * t / threads;
  } else {
    std::vector<std::int64_t> would = loads;
    for (std::int64_t tile = 0; tile < count; ++tile) {
      const auto least = static_cast<std::size_t>(std::ranges::min_element(would) - would.begin());
      would[least] += outputs;
      ++taken[least];
    }
  }
  for (std::size_t t = 0; t < loads.size(); ++t) loads[t] += taken[t] * outputs;
  return taken;
}

}  // namespace

TileShares::TileShares(const TileGrid& grid, std::int64_t threads) : grid_(grid), taken_(static_cast<std::size_t>(threads)) {
  const std::int64_t whole_i = grid.i / grid.tile_i, whole_j = grid.j / grid.tile_j;
  const std::int64_t ragged_i = grid.i % grid.tile_i, ragged_j = grid.j % grid.tile_j;
  const std::int64_t last_i = ragged_i > 0 ? 1 : 0, last_j = ragged_j > 0 ? 1 : 0;
  kinds_ = {Kind{.count_i = whole_i, .count_j = whole_j, .rows = grid.tile_i, .columns = grid.tile_j},
            Kind{.first_i = whole_i, .count_i = last_i, .count_j = whole_j, .rows = ragged_i, .columns = grid.tile_j},
            Kind{.first_j = whole_j, .count_i = whole_i, .count_j = last_j, .rows = grid.tile_i, .columns = ragged_j},
            Kind{.first_i = whole_i, .first_j = whole_j, .count_i = last_i, .count_j = last_j, .rows = ragged_i, .columns = ragged_j}};
  if (kinds_[2].outputs() > kinds_[1].outputs()) std::swap(kinds_[1], kinds_[2]);
  std::vector<std::int64_t> loads(taken_.size());
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    const Kind& tiles = kinds_[kind];
    const std::vector<std::int64_t> taken = deal(grid.parts * tiles.count_i * tiles.count_j, tiles.outputs(), loads);
    for (std::size_t t = 0; t < taken.size(); ++t) taken_[t][kind] = taken[t];
  }
}

double TileShares::largest(const std::array<double, kKinds>& costs) const {
  double most = 0.0;
  for (const auto& taken : taken_) {
    double cost = 0.0;
    for (std::size_t kind = 0; kind < kKinds; ++kind) cost += static_cast<double>(taken[kind]) * costs[kind];
    most = std::max(most, cost);
  }
  return most;
}

double TileShares::largest_share() const {
  std::array<double, kKinds> outputs{};
  for (std::size_t kind = 0; kind < kKinds; ++kind) outputs[kind] = static_cast<double>(kinds_[kind].outputs());
  return largest(outputs) / static_cast<double>(grid_.parts * grid_.i * grid_.j);
}

std::vector<std::int64_t> TileShares::order() const {
  std::vector<std::int64_t> order;
  order.reserve(static_cast<std::size_t>(grid_.tiles()));
  std::array<std::int64_t, kKinds> next{};
  for (const auto& taken : taken_) {
    for (std::size_t kind = 0; kind < kKinds; ++kind) {
      const Kind& tiles = kinds_[kind];
      const std::int64_t in_a_part = tiles.count_i * tiles.count_j;
      for (std::int64_t left = taken[kind]; left > 0; --left, ++next[kind]) {
        const std::int64_t part = next[kind] / in_a_part, in_part = next[kind] % in_a_part;
        const std::int64_t along_i = tiles.first_i + in_part % tiles.count_i, along_j = tiles.first_j + in_part / tiles.count_i;
        order.push_back((part * grid_.tiles_j() + along_j) * grid_.tiles_i() + along_i);
      }
    }
  }
  return order;
}

std::vector<std::int64_t> TileShares::ends() const {
  std::vector<std::int64_t> ends;
  std::int64_t end = 0;
  for (const auto& taken : taken_) ends.push_back(end += std::accumulate(taken.begin(), taken.end(), std::int64_t{0}));
  return ends;
}

}  // namespace tilewave
