// Tiles of both operands in shared memory, 8 x 8 outputs a thread in registers: each element is read once for 128 outputs.
#pragma once

#include "kernels/gemm/kernel.h"

namespace tilewave {

inline constexpr Tile kSharedMemoryTile = {128, 128};
inline constexpr Tile kSharedMemoryTiles[] = {kSharedMemoryTile};
inline constexpr int kSharedMemoryTilesDepth = 16;

extern const GemmKernel kSharedMemoryTilesKernel;
void launch_shared_memory_tiles(CudaQueue& queue, const GemmCall& call);

}  // namespace tilewave
