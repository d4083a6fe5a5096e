// How the problem of rows whose blocks stay is launched, and the pass that adds the parts of the last tiles.
#include "kernels/cuda/gemm/persistent_problem.h"
#include "kernels/gemm/rows/warpgroup.h"

namespace tilewave {
namespace {

constexpr int kThreads = 256;

// A thread for every run of columns of the tiles that were taken in parts.
template <int kWidth>
__global__ void __launch_bounds__(kThreads) add_parts(const __grid_constant__ PersistentProblem p, int rows, int cols) {
  const int runs = cols / kWidth, index = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
  const int line = index / runs % rows, run = index % runs * kWidth, cut = index / runs / rows;
  const TilePlace place = place_of(p, p.whole_tiles + cut);
  const std::int64_t row = std::int64_t{place.row} * rows + line, col = std::int64_t{place.col} * cols + run;
  const int cuts = p.tiles_down * p.tiles_across - p.whole_tiles;  // the first parts, the second and so on lie side by side
  if (cut >= cuts || row >= p.epilogue.rows || col >= p.epilogue.cols) return;
  finish_parts<kWidth>(p.epilogue, row, col, p.parts, p.split, cuts, cut * p.parts.part + line * p.parts.pitch + run);
  if (p.sum_rows && col == 0) finish_bias_gradient(p.epilogue, row, p.parts.bias_gradient(p.split, cuts, cut * p.parts.n + line));
}

}  // namespace

PersistentLaunch persistent_launch(const GemmArgs& args, const GemmPlan& plan) {
  const auto [rows, cols] = in_memory(problem_of(args), plan.tile);
  const std::int64_t depth = kDepthBytes / size_of(args.a.dtype);
  PersistentLaunch launch = {.problem = {tile_problem_of(args, plan, depth)}, .rows = rows, .cols = cols, .grid = plan.blocks};
  PersistentProblem& problem = launch.problem;
  problem.blocks_k = static_cast<int>(ceil_div(problem.depth, depth));
  problem.whole_tiles = static_cast<int>(plan.split > 1 ? plan.whole_tiles : plan.tiling.tiles);
  problem.items = static_cast<int>(plan.items());
  problem.sums_alone = args.d.dtype == args.a.dtype && !args.accumulate && stores_sums(problem_of(args));
  problem.parts = SplitSums<float>(args.workspace, rows, cols, problem.items - problem.whole_tiles, rows);
  return launch;
}

void add_parts_of_tiles(CudaQueue& queue, const PersistentLaunch& launch) {
  const PersistentProblem& problem = launch.problem;
  if (problem.split == 1) return;
  const bool wide = problem.epilogue.wide;
  const std::int64_t tiles = (problem.items - problem.whole_tiles) / problem.split;
  const std::int64_t runs = tiles * launch.rows * launch.cols / (wide ? kRun : 1);
  const auto add = wide ? add_parts<kRun> : add_parts<1>;
  add<<<static_cast<unsigned>(ceil_div(runs, kThreads)), kThreads, 0, stream_of(queue)>>>(problem, static_cast<int>(launch.rows),
                                                                                          static_cast<int>(launch.cols));
  TW_CUDA_LAUNCHED("gemm, the sum of the last tiles' parts");
}

}  // namespace tilewave
