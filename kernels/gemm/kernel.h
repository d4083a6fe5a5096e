// One way to run GEMMs, as data compiled by the host compiler in every build, so that a laptop can plan for any device.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "kernels/core/device.h"
#include "kernels/core/error.h"
#include "kernels/gemm/plan.h"
#include "kernels/gemm/problem.h"
#include "kernels/gemm/tiling.h"

namespace tilewave {

struct CpuQueue;
struct CudaQueue;
struct GemmArgs;
struct GemmCall;

using CpuGemmLaunch = void (*)(CpuQueue& queue, const GemmCall& call);
using CudaGemmLaunch = void (*)(CudaQueue& queue, const GemmCall& call);

struct GemmKernel {
  std::string_view name;  // the technique
  Backend backend = Backend::cpu;
  bool tensor_cores = false;
  bool reference = false;       // a library's: it runs where it is forced and is never chosen
  bool ladder = false;          // a rung to learn from, shown by bench --ladder: it too runs where it is forced and is never chosen
  std::span<const Tile> tiles;  // in order of preference
  bool sums_outputs = false;    // it stores sums of D over N beside D where they are asked for
  // Of a block that computes such a tile; null where a block on every device has what it needs.
  std::int64_t (*shared_bytes)(Tile tile) = nullptr;
  // Why this row cannot run the problem on the device, but for what refuse() says of every row.
  std::string (*own_refusal)(const GemmProblem& problem, const DeviceInfo& device) = nullptr;
  // Everything of the plan but the reason: waves, alignments, workspace, predicted time. A row that can split K does so in `split`
  // parts, or, where that is 0, in as many as its model takes the least time for; other rows do not look at it.
  GemmPlan (*plan)(const GemmProblem& problem, Tile tile, const DeviceInfo& device, int split) = nullptr;
  // The same but for the predicted time, where predicting it takes a share of a small launch; null: plan does.
  GemmPlan (*unpredicted_plan)(const GemmProblem& problem, Tile tile, const DeviceInfo& device) = nullptr;
  // Null where this build has no code for it (facts/has_cuda.h).
  CpuGemmLaunch launch_cpu = nullptr;
  CudaGemmLaunch launch_cuda = nullptr;
  // Of a library's row: how many candidates its heuristic has for this problem, GemmPlan::algorithm naming one. Null elsewhere.
  int (*candidates)(CudaQueue& queue, const GemmArgs& args) = nullptr;

  bool fits(Tile tile, const DeviceInfo& device) const { return shared_bytes == nullptr || shared_bytes(tile) <= device.shared_bytes; }

  // Why this row cannot run the problem on the device in any tile of `some`, its own, as a sentence; empty where it can in one.
  std::string refuse(const GemmProblem& problem, const DeviceInfo& device, std::span<const Tile> some) const {
    if (problem.epilogue.output_sums && !sums_outputs) {
      return "it stores no sums of D over N; the wgrad of the layer below sums them on its way, as its bias gradient.";
    }
    std::string refusal = own_refusal(problem, device);
    const auto tile_fits = [&](Tile tile) { return fits(tile, device); };
    if (!refusal.empty() || std::ranges::any_of(some, tile_fits)) return refusal;
    const Tile least = *std::ranges::min_element(some, {}, shared_bytes);
    refusal = concat("a block of ", least.m, "x", least.n, " needs ", shared_bytes(least), " bytes of shared memory, and the device gives ",
                     device.shared_bytes);
    std::string_view before = "; of its tiles there fit ";
    for (const Tile tile : tiles) {
      if (tile_fits(tile)) refusal += concat(std::exchange(before, ", "), tile.m, "x", tile.n);
    }
    return refusal + ".";
  }
  std::string refuse(const GemmProblem& problem, const DeviceInfo& device) const { return refuse(problem, device, tiles); }
};

// What every row's plan has in common: the tiles, the waves that `slots` tiles at a time make of them, the alignments.
inline GemmPlan plan_tiles(std::string_view row, const GemmProblem& problem, Tile tile, std::int64_t slots) {
  const Tiling tiling = tile_waves(problem.m, problem.n, tile, slots);
  return {.row = row,
          .tile = tile,
          .blocks = tiling.tiles,
          .tiling = tiling,
          .a_alignment = problem.a_alignment,
          .b_alignment = problem.b_alignment,
          .d_alignment = problem.d_alignment,
          .inside = {},
          .reason = {}};
}

// The same for D as it lies in memory: tiles of an n-major D are N x M.
inline GemmPlan plan_stored_tiles(std::string_view row, const GemmProblem& problem, Tile tile, std::int64_t slots) {
  GemmPlan plan = plan_tiles(row, problem, tile, slots);
  if (problem.d_major == Major::n) {
    plan.tiling = tile_waves(problem.n, problem.m, tile, slots);
    plan.blocks = plan.tiling.tiles;
  }
  return plan;
}

// Rows and columns of a tile as D lies in memory.
struct TileInMemory {
  std::int64_t rows = 0, cols = 0;
};
constexpr TileInMemory in_memory(const GemmProblem& problem, Tile tile) {
  return problem.d_major == Major::m ? TileInMemory{.rows = tile.n, .cols = tile.m} : TileInMemory{.rows = tile.m, .cols = tile.n};
}

}  // namespace tilewave
