// A tile's N, tokens or a weight's rows, is wgmma's columns, which come in steps of 32: tiles that fill one wave where those of 64 rows do
// not.
#pragma once

#include "kernels/gemm/sm90/warpgroup.h"

namespace tilewave {

inline constexpr Tile kTransposedTiles[] = {{256, 160}, {128, 160}, {192, 96}};

constexpr int swap_ab_consumers(Tile tile) { return tile.m == 192 ? 3 : 2; }
constexpr int swap_ab_stages(Tile tile) { return stages_beside(kBarrierBytes, tile); }
constexpr std::int64_t transposed_tiles_shared_bytes(Tile tile) { return shared_bytes_beside(kBarrierBytes, tile); }

extern const GemmKernel kTransposedTilesKernel;
void launch_transposed_tiles(CudaQueue& queue, const GemmCall& call);

}  // namespace tilewave
