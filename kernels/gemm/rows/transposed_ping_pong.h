// Blocks that stay, whose two warpgroups take turns at turned tiles.
#pragma once

#include "kernels/gemm/rows/warpgroup.h"

namespace tilewave {

inline constexpr Tile kTransposedPingPongTiles[] = {{128, 160}, {128, 192}};

// Of N that leave a warpgroup at a time, by way of one of its two buffers.
constexpr std::int64_t columns_at_once(Tile tile) { return tile.n / 2; }
constexpr std::int64_t transposed_ping_pong_rest(Tile tile) { return 4 * columns_at_once(tile) * 128 + kBarrierBytes; }
constexpr int transposed_ping_pong_stages(Tile tile) { return stages_beside(transposed_ping_pong_rest(tile), tile); }
constexpr std::int64_t transposed_ping_pong_shared_bytes(Tile tile) { return shared_bytes_beside(transposed_ping_pong_rest(tile), tile); }

extern const GemmRow kTransposedPingPongRow;
void launch_transposed_ping_pong(CudaQueue& queue, const GemmArgs& args, const GemmPlan& plan);

}  // namespace tilewave
