// The launch of the row tensor_core_persistent: to the instance of the element type, the tile and the majors. The instances are
// compiled in files of their own, one for each type and major of the left operand.
#include "kernels/cuda/gemm/tensor_core_persistent.h"

namespace tilewave {

void launch_tensor_core_persistent(CudaQueue& queue, const GemmArgs& args, const GemmPlan& plan) {
  const TileProblem problem = tile_problem_of(args, plan, kDepthBytes / size_of(args.a.dtype));
  const auto [left, right] = contiguous_of(args);
  const auto [rows, cols] = in_memory(problem_of(args), plan.tile);
  const PersistentLaunch launch = {.problem = problem, .rows = rows, .cols = cols, .right = right, .grid = plan.blocks};
  if (args.a.dtype == DType::bf16) {
    left == Contiguous::along_depth ? launch_persistent<bf16, Contiguous::along_depth>(queue, launch)
                                    : launch_persistent<bf16, Contiguous::across>(queue, launch);
  } else {
    left == Contiguous::along_depth ? launch_persistent<f16, Contiguous::along_depth>(queue, launch)
                                    : launch_persistent<f16, Contiguous::across>(queue, launch);
  }
  if (plan.split > 1) reduce_split_sums(queue, problem.epilogue, problem.parts, plan.split);
}

}  // namespace tilewave
