// One wave of blocks, each running tile after tile: the copies of the next tile are under way while this one is finished. The
// raster keeps what a wave reads in the second-level cache.
#pragma once

#include "kernels/gemm/kernel.h"

namespace tilewave {

inline constexpr Tile kTensorCorePersistentTiles[] = {{256, 128}, {128, 256}, {128, 128}, {256, 64},
                                                      {64, 256},  {128, 64},  {64, 128},  {64, 64}};

// How a tile of rows x cols of D, as it lies in memory, is run: warps down and across, stages of 128 bytes along K, blocks on an SM.
struct TensorCoreConfig {
  int warps_down = 0, warps_across = 0, stages = 0, blocks = 0;
};
constexpr TensorCoreConfig tensor_core_persistent_config(std::int64_t rows, std::int64_t cols) {
  switch (rows * 1000 + cols) {
    case 128'256:
      return {.warps_down = 2, .warps_across = 4, .stages = 3, .blocks = 1};
    case 256'128:
      return {.warps_down = 4, .warps_across = 2, .stages = 3, .blocks = 1};
    case 128'128:
      return {.warps_down = 2, .warps_across = 2, .stages = 3, .blocks = 2};
    case 64'256:
      return {.warps_down = 2, .warps_across = 4, .stages = 3, .blocks = 1};
    case 256'064:
      return {.warps_down = 4, .warps_across = 2, .stages = 3, .blocks = 1};
    case 64'128:
      return {.warps_down = 2, .warps_across = 2, .stages = 3, .blocks = 2};
    case 128'064:
      return {.warps_down = 2, .warps_across = 2, .stages = 3, .blocks = 2};
    default:
      return {.warps_down = 2, .warps_across = 2, .stages = 3, .blocks = 3};
  }
}
constexpr std::int64_t tensor_core_shared_bytes(std::int64_t rows, std::int64_t cols, int stages) { return stages * (rows + cols) * 128; }

extern const GemmKernel kTensorCorePersistentKernel;
void launch_tensor_core_persistent(CudaQueue& queue, const GemmCall& call);

}  // namespace tilewave
