// From a plan's tile, known when a program runs, to a kernel's, which the compiler knows.
#pragma once

#include <cstddef>
#include <iterator>
#include <string_view>
#include <type_traits>
#include <utility>

#include "kernels/core/error.h"
#include "kernels/gemm/tiling.h"

namespace tilewave {

// launch.operator()<m, n>() for the tile of kTiles, a row's one list of them, that equals `tile`: what the list has has a kernel, and what
// has none is an Error instead of a D that nobody writes.
template <const auto& kTiles, class Launch>
void with_tile(std::string_view row, Tile tile, Launch&& launch) {
  const auto launch_if_equal = [&]<std::size_t kIndex>(std::integral_constant<std::size_t, kIndex>) {
    constexpr Tile kTile = kTiles[kIndex];
    if (tile != kTile) return false;
    launch.template operator()<static_cast<int>(kTile.m), static_cast<int>(kTile.n)>();
    return true;
  };
  const bool launched = [&]<std::size_t... kIndices>(std::index_sequence<kIndices...>) {
    return (launch_if_equal(std::integral_constant<std::size_t, kIndices>{}) || ...);
  }
  (std::make_index_sequence<std::size(kTiles)>{});
  TW_CHECK(launched, row, " has no kernel for tiles of ", tile.m, "x", tile.n, "; plan with one of those that it lists.");
}

}  // namespace tilewave
