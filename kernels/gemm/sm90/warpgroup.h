// What the rows on Hopper's tensor cores have in common: how they lay out a block, and what they refuse.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/gemm/kernel.h"

namespace tilewave {

// A stage is a geometry in bytes: a swizzled line of each row and column of the tile, whatever the operands' type.
inline constexpr std::int64_t kSwizzledLineBytes = 128;
constexpr std::int64_t k_tile_of(DType operands) { return kSwizzledLineBytes / size_of(operands); }
inline constexpr std::int64_t kKTile = k_tile_of(DType::bf16);  // of K in a stage of 16-bit operands

// Bytes of a stage of both operands, and of the strips through which a warp of 16 rows stores.
constexpr std::int64_t stage_bytes(Tile tile) { return (tile.m + tile.n) * kSwizzledLineBytes; }
inline constexpr std::int64_t kStagingBytesOfWarp = 16 * kSwizzledLineBytes;
inline constexpr std::int64_t kOnesBytes = 1024;  // an operand of ones, which sums a bias gradient
inline constexpr std::int64_t kBarrierBytes = 1024;
inline constexpr std::int64_t kBlockBytes = std::int64_t{227} * 1024;  // of shared memory, the most that a block can have

// A ring takes as many stages as fit in a block beside `rest` bytes; what the block then needs.
constexpr int stages_beside(std::int64_t rest, Tile tile) { return static_cast<int>((kBlockBytes - rest) / stage_bytes(tile)); }
constexpr std::int64_t shared_bytes_beside(std::int64_t rest, Tile tile) { return stages_beside(rest, tile) * stage_bytes(tile) + rest; }

// A kernel on Hopper's Tensor Cores.
constexpr GemmKernel on_hopper(GemmKernel kernel) {
  kernel.backend = Backend::cuda;
  kernel.tensor_cores = true;
  return kernel;
}

// Why TMA cannot name the problem's elements; empty where it can.
std::string refuse_beyond_coordinates(const GemmProblem& problem);
// Why the problem cannot run on wgmma and TMA; empty where it can.
std::string refuse_warpgroup(const GemmProblem& problem, const DeviceInfo& device);
// The same of rows whose blocks add up one tile's sums: they have no epilogue but an addition into fp32 and the bias gradient.
std::string refuse_adding_alone(const GemmProblem& problem, const DeviceInfo& device);

// The same of rows whose tiles are turned, wgmma's rows along M.
std::string refuse_swap_ab(const GemmProblem& problem, const DeviceInfo& device);

// Columns of D in a band of the raster, 2,048 to 4,096. The rows' operand comes from memory once for each band where D is large; what a
// band's columns read should stay in L2 meanwhile, so that no more than the least take more than 8 MB of their operand.
constexpr std::int64_t group_columns(std::int64_t k) {
  return std::clamp<std::int64_t>((std::int64_t{8} << 20) / (2 * std::max<std::int64_t>(k, 1)), 2048, 4096);
}

// Whether sums are stored as they are, or added to D in fp32.
bool stores_accumulators(const GemmProblem& problem);
// Whether they are a weight's gradient's, and TMA can store them: the rows have kernels of their own for that.
bool makes_gradient(const GemmProblem& problem);
// And whether it can store all of them: their rows end on 16 bytes.
bool makes_whole_gradient(const GemmProblem& problem);

// How many blocks a cluster has whose blocks share nothing but where they run: two, with tiles one behind the other along N, on
// neighbouring SMs, which ask L2 for the columns that they have in common at about the same time, so that it is asked for them once.
constexpr int neighbours(const Tiling& tiling) { return tiling.tiles_n % 2 == 0 ? 2 : 1; }

// Whether blocks can take the tiles of their SMs: a weight's gradient, no bias's beside it, whose `blocks` one wave holds and that fill
// half of it. The choice takes a few tenths of a microsecond, which a block gains back where it loads half a megabyte.
bool assigns_tiles(const GemmProblem& problem, std::int64_t blocks, const DeviceInfo& device);
inline constexpr std::int64_t kMinAssignedBytes = std::int64_t{1} << 19;
// Tiles along M of a patch for the SMs of one GPC: of those of a power of two, the one that asks L2 for least where what its tiles have in
// common is asked for once.
inline constexpr std::int64_t kSmsOfGpc = 16;  // 16 or 18
constexpr std::int64_t gpc_columns(Tile tile) {
  const auto asked = [&](std::int64_t columns) { return columns * tile.m + kSmsOfGpc / columns * tile.n; };
  std::int64_t best = 1;
  for (std::int64_t columns = 2; columns <= kSmsOfGpc; columns *= 2) best = asked(columns) <= asked(best) ? columns : best;
  return best;
}
// All tiles, by their numbers along M and then along N, patch by patch, so that those of a GPC follow each other; in them pairs have the
// wider operand in common, for the two SMs of a TPC.
std::vector<int> gpc_order(const Tiling& tiling, Tile tile);

// Blocks that stay and take turns at the plan's tiles: sets how many, and says how many turns the busiest takes. Where the row can, two
// blocks share their columns if D is tall enough for pairs of tiles, they take several, and none of them takes a turn more for it: in a
// wave or two, a block's wait for the other costs more than the load that it saves.
enum class Pairs : bool { no, where_they_gain };
double plan_persistent(GemmPlan& plan, const DeviceInfo& device, Pairs pairs = Pairs::where_they_gain);

}  // namespace tilewave
