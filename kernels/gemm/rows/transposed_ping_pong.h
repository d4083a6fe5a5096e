// Blocks that stay, whose two warpgroups take turns at turned tiles.
#pragma once

#include <algorithm>

#include "kernels/gemm/rows/warpgroup.h"

namespace tilewave {

inline constexpr Tile kTransposedPingPongTiles[] = {{128, 160}, {128, 192}};

// Sums with a bias at most, in rows of whole 16 bytes, which the copy engine stores: they have a kernel of their own.
bool is_plain(const GemmProblem& problem);

// Of N that leave a warpgroup at a time, by way of one of its two buffers. What is plain can do with small ones, which makes room for a
// fifth stage of the wider tile.
constexpr std::int64_t columns_at_once(Tile tile, bool plain) { return plain && tile.n == 192 ? tile.n / 4 : tile.n / 2; }
constexpr std::int64_t transposed_ping_pong_rest(Tile tile, bool plain) { return 4 * columns_at_once(tile, plain) * 128 + kBarrierBytes; }
constexpr int transposed_ping_pong_stages(Tile tile, bool plain) { return stages_beside(transposed_ping_pong_rest(tile, plain), tile); }
constexpr std::int64_t transposed_ping_pong_bytes(Tile tile, bool plain) {
  return shared_bytes_beside(transposed_ping_pong_rest(tile, plain), tile);
}
constexpr std::int64_t transposed_ping_pong_shared_bytes(Tile tile) {
  return std::max(transposed_ping_pong_bytes(tile, false), transposed_ping_pong_bytes(tile, true));
}

extern const GemmRow kTransposedPingPongRow;
void launch_transposed_ping_pong(CudaQueue& queue, const GemmArgs& args, const GemmPlan& plan);

}  // namespace tilewave
