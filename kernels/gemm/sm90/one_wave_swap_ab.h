// A tile's N, tokens or a weight's rows, is wgmma's columns, which come in steps of 32: tiles that fill one wave where those of 64 rows do
// not.
#pragma once

#include "kernels/gemm/sm90/warpgroup.h"

namespace tilewave {

inline constexpr Tile kOneWaveSwapAbTiles[] = {{256, 160}, {128, 160}, {192, 96}};

constexpr int swap_ab_consumers(Tile tile) { return tile.m == 192 ? 3 : 2; }
constexpr int swap_ab_stages(Tile tile) { return stages_beside(kBarrierBytes, tile); }
constexpr std::int64_t one_wave_swap_ab_shared_bytes(Tile tile) { return shared_bytes_beside(kBarrierBytes, tile); }

extern const GemmKernel kOneWaveSwapAbKernel;
void launch_one_wave_swap_ab(CudaQueue& queue, const GemmCall& call);

}  // namespace tilewave
