// One way to run GEMMs, as data compiled by the host compiler in every build, so that a laptop can plan for any device.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

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
  GemmComposition composition;
  Backend backend = Backend::cpu;
  bool tensor_cores = false;
  bool reference = false;       // a library's: it runs where it is forced and is never chosen
  bool ladder = false;          // a rung to learn from, shown by bench --ladder: it too runs where it is forced and is never chosen
  std::span<const Tile> tiles;  // in order of preference
  bool sums_outputs = false;    // it stores sums of D over N beside D where they are asked for
  // Whether the tile, one of `tiles`, suits the problem; null where each does.
  bool (*suits)(const GemmProblem& problem, Tile tile) = nullptr;
  // Of a block that computes such a tile; null where a block on every device has what it needs.
  std::int64_t (*shared_bytes)(Tile tile) = nullptr;
  // Why this kernel cannot run the problem on the device, but for what refuse() says of every one.
  std::string (*own_refusal)(const GemmProblem& problem, const DeviceInfo& device) = nullptr;
  // Everything of the plan but the composition and the reason: waves, alignments, workspace, predicted time. A kernel that can split K
  // does so in `split` parts, or, where that is 0, in as many as its model takes the least time for; others do not look at it.
  GemmPlan (*own_plan)(const GemmProblem& problem, Tile tile, const DeviceInfo& device, int split) = nullptr;
  // The same but for the predicted time, where predicting it takes a share of a small launch; null: own_plan does.
  GemmPlan (*own_unpredicted_plan)(const GemmProblem& problem, Tile tile, const DeviceInfo& device) = nullptr;
  // Null where this build has no code for it (facts/has_cuda.h).
  CpuGemmLaunch launch_cpu = nullptr;
  CudaGemmLaunch launch_cuda = nullptr;
  // Of a library: how many candidates its heuristic has for this problem, GemmPlan::algorithm naming one. Null elsewhere.
  int (*candidates)(CudaQueue& queue, const GemmArgs& args) = nullptr;

  bool fits(const GemmProblem& problem, Tile tile, const DeviceInfo& device) const {
    return (suits == nullptr || suits(problem, tile)) && (shared_bytes == nullptr || shared_bytes(tile) <= device.shared_bytes);
  }

  // Why this kernel cannot run the problem on the device in any tile of `some`, its own, as a sentence; empty where it can in one.
  std::string refuse(const GemmProblem& problem, const DeviceInfo& device, std::span<const Tile> some) const {
    if (problem.epilogue.output_sums && !sums_outputs) {
      return "it stores no sums of D over N; the wgrad of the layer below sums them on its way, as its bias gradient.";
    }
    const std::string refusal = own_refusal(problem, device);
    if (!refusal.empty() || std::ranges::any_of(some, [&](Tile tile) { return fits(problem, tile, device); })) return refusal;
    return refuse_tiles(problem, device, some);
  }
  std::string refuse(const GemmProblem& problem, const DeviceInfo& device) const { return refuse(problem, device, tiles); }

  GemmPlan plan(const GemmProblem& problem, Tile tile, const DeviceInfo& device, int split) const {
    GemmPlan plan = own_plan(problem, tile, device, split);
    plan.composition = composition;
    return plan;
  }
  // Without the predicted time, where that is less work.
  GemmPlan unpredicted_plan(const GemmProblem& problem, Tile tile, const DeviceInfo& device, int split) const {
    if (own_unpredicted_plan == nullptr) return plan(problem, tile, device, split);
    GemmPlan plan = own_unpredicted_plan(problem, tile, device);
    plan.composition = composition;
    return plan;
  }

 private:
  // Of tiles that do not fit.
  std::string refuse_tiles(const GemmProblem& problem, const DeviceInfo& device, std::span<const Tile> some) const {
    std::string fitting;
    for (const Tile tile : tiles) {
      if (fits(problem, tile, device)) fitting += concat(fitting.empty() ? "" : ", ", tile.m, "x", tile.n);
    }
    const auto suited = [&](Tile tile) { return suits == nullptr || suits(problem, tile); };
    if (std::ranges::none_of(some, suited)) return concat("its tiles for such a problem are ", fitting, ".");
    const Tile least = *std::ranges::min_element(some, {}, shared_bytes);
    return concat("a block of ", least.m, "x", least.n, " needs ", shared_bytes(least), " bytes of shared memory, and the device gives ",
                  device.shared_bytes, fitting.empty() ? "" : "; of its tiles there fit ", fitting, ".");
  }
};

// What every kernel's plan has in common: the tiles, the waves that `slots` tiles at a time make of them, the alignments.
inline GemmPlan plan_tiles(const GemmProblem& problem, Tile tile, std::int64_t slots) {
  const Tiling tiling = tile_waves(problem.m, problem.n, tile, slots);
  return {.composition = {},
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
inline GemmPlan plan_stored_tiles(const GemmProblem& problem, Tile tile, std::int64_t slots) {
  GemmPlan plan = plan_tiles(problem, tile, slots);
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
