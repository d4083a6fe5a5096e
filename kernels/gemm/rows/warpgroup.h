// What the rows on Hopper's tensor cores have in common: what they refuse, and how a tile's time is made up.
#pragma once

#include <string>

#include "kernels/gemm/row.h"

namespace tilewave {

inline constexpr std::int64_t kBlockK = 64;  // of K in a stage: 128 bytes of a 16-bit type, the width of a swizzled line

// Bytes of a stage of both operands, and of the strips through which a warp of 16 rows stores.
constexpr std::int64_t stage_bytes(Tile tile) { return (tile.m + tile.n) * kBlockK * 2; }
inline constexpr std::int64_t kStripBytesOfWarp = std::int64_t{16} * 128;
inline constexpr std::int64_t kOnesBytes = 1024;  // an operand of ones, which sums a bias gradient
inline constexpr std::int64_t kBarrierBytes = 1024;
inline constexpr std::int64_t kBlockBytes = std::int64_t{227} * 1024;  // of shared memory, the most that a block can have

// Why the problem cannot run on wgmma and the bulk copy engine with blocks of that much shared memory; empty where it can.
std::string refuse_warpgroup(const GemmProblem& problem, const DeviceInfo& device, std::int64_t shared_bytes);

// Model, in cycles of an SM. A stage takes its products at the tensor cores' rate, or as long as shared memory, 128 bytes a cycle, is
// busy with filling it and with what wgmma reads of it, whichever is longer; all of that at the efficiency a hot card sustains. A
// tile's epilogue moves bytes and computes activations.
struct WarpgroupTime {
  double stage = 0.0;     // of 64 of K of one tile
  double epilogue = 0.0;  // of one tile
  double launch = 0.0;
};
// What a row's own shape adds: how many of M one wgmma has, and the cycles that an activation of one element of a tile costs, which
// depends on how many warpgroups compute at a time and on the registers their sums leave them.
struct WarpgroupShape {
  std::int64_t columns = 0;
  double activation_cycles = 0.0;
};
WarpgroupTime warpgroup_time(const GemmProblem& problem, Tile tile, const WarpgroupShape& shape, const DeviceInfo& device);

// Two blocks share their columns where D is tall enough for pairs of tiles.
int cluster_of(const Tiling& tiling);

}  // namespace tilewave
