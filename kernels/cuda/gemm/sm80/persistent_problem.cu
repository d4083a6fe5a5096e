// How the problem of rows whose blocks stay is launched, and the pass that adds the parts of the last tiles.
#include "kernels/cuda/gemm/sm80/persistent_problem.h"
#include "kernels/gemm/sm90/warpgroup.h"

namespace tilewave {
namespace {

constexpr int kThreads = 256;

// A thread for every run of columns of the tiles that were taken in parts.
template <int kWidth>
__global__ void __launch_bounds__(kThreads) reduce_partials(const __grid_constant__ PersistentProblem p, int rows, int cols) {
  const int runs = cols / kWidth, index = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
  const int line = index / runs % rows, run = index % runs * kWidth, cut = index / runs / rows;
  const TileCoord coord = tile_coord(p, p.whole_tiles + cut);
  const std::int64_t row = std::int64_t{coord.row} * rows + line, col = std::int64_t{coord.col} * cols + run;
  const int cuts = p.tiles_down * p.tiles_across - p.whole_tiles;  // the first parts, the second and so on lie side by side
  if (cut >= cuts || row >= p.epilogue.rows || col >= p.epilogue.cols) return;
  finish_partials<kWidth>(p.epilogue, row, col, p.parts, p.split, cuts, cut * p.parts.part + line * p.parts.pitch + run);
  if (p.sum_rows && col == 0) finish_bias_gradient(p.epilogue, row, p.parts.bias_gradient(p.split, cuts, cut * p.parts.n + line));
}

}  // namespace

PersistentLaunch persistent_launch(const GemmCall& call) {
  const auto [rows, cols] = in_memory(call.problem, call.plan.tile);
  const std::int64_t depth = kDepthBytes / size_of(call.args.a.dtype);
  PersistentLaunch launch = {.problem = {tile_problem_of(call, depth)}, .rows = rows, .cols = cols, .grid = call.plan.blocks};
  PersistentProblem& problem = launch.problem;
  problem.k_tiles = static_cast<int>(ceil_div(problem.depth, depth));
  problem.whole_tiles = static_cast<int>(call.plan.split > 1 ? call.plan.whole_tiles : call.plan.tiling.tiles);
  problem.items = static_cast<int>(call.plan.items());
  problem.accumulators_alone =
      call.args.d.dtype == call.args.a.dtype && !call.args.accumulate && call.args.alpha.is_one() && stores_accumulators(call.problem);
  problem.parts = SplitKPartials<float>(call.args.workspace, rows, cols, problem.items - problem.whole_tiles, rows);
  return launch;
}

void reduce_tile_partials(CudaQueue& queue, const PersistentLaunch& launch) {
  const PersistentProblem& problem = launch.problem;
  if (problem.split == 1) return;
  const bool wide = problem.epilogue.wide;
  const std::int64_t tiles = (problem.items - problem.whole_tiles) / problem.split;
  const std::int64_t runs = tiles * launch.rows * launch.cols / (wide ? kRun : 1);
  const auto add = wide ? reduce_partials<kRun> : reduce_partials<1>;
  add<<<static_cast<unsigned>(ceil_div(runs, kThreads)), kThreads, 0, stream_of(queue)>>>(problem, static_cast<int>(launch.rows),
                                                                                          static_cast<int>(launch.cols));
  TW_CUDA_LAUNCHED("gemm, the sum of the last tiles' parts");
}

}  // namespace tilewave
