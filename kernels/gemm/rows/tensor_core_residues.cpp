// Model: that of tensor_core_persistent's tile, for the tiles that residues make.
#include "kernels/gemm/rows/tensor_core_residues.h"

#include "kernels/gemm/rows/tensor_core_refusals.h"
#include "kernels/queue.h"

namespace tilewave {
namespace {

// D's rows in memory come from the left operand.
struct Sides {
  std::int64_t rows = 0, left_alignment = 0, right_alignment = 0;  // at most 16 bytes
  bool left_along_depth = false, right_along_depth = false;
};
Sides sides_of(const GemmProblem& p) {
  const bool a_along_k = p.a_major == Major::k, b_along_k = p.b_major == Major::k;
  const std::int64_t a = std::min<std::int64_t>(p.a_alignment, 16), b = std::min<std::int64_t>(p.b_alignment, 16);
  return p.d_major == Major::m ? Sides{p.n, b, a, b_along_k, a_along_k} : Sides{p.m, a, b, a_along_k, b_along_k};
}

std::string refuse(const GemmProblem& problem, const DeviceInfo& device) {
  const Sides sides = sides_of(problem);
  if (problem.operand_dtype == DType::f32) return "its operands are bf16 or f16.";
  if (sides.right_alignment < 16 || sides.right_along_depth) {
    return "the operand that D's columns come from lies across K, and its rows start on 16 bytes.";
  }
  if (problem.epilogue.bias_gradient) return "it sums no bias gradient.";
  if (device.shared_bytes < kTensorCoreResiduesSharedBytes) {
    return sentence("its stages take ", kTensorCoreResiduesSharedBytes, " bytes of shared memory, and a block here has ",
                    device.shared_bytes, ".");
  }
  return refuse_without_tensor_cores(problem, device);
}

GemmPlan plan(const GemmProblem& problem, Tile tile, const DeviceInfo& device, int split) {
  const Sides sides = sides_of(problem);
  const std::int64_t tile_rows = in_memory(problem, tile).rows;
  const std::int64_t blocks = resident_blocks(2, kTensorCoreResiduesSharedBytes, device);
  // Lines of a tile that residues take cost what useful ones do.
  const double useful =
      sides.left_along_depth ? 1.0 : static_cast<double>(tile_rows - kTensorCoreResiduesMargin) / static_cast<double>(tile_rows);
  GemmPlan plan = plan_on_gpu("tensor_core_residues", problem, tile, device,
                              {.multiply_adds_per_cycle = 0.95 * useful * time_model_of(device).mma_fraction * mma_rate(problem, device),
                               .peak_multiply_adds_per_cycle = mma_rate(problem, device),
                               .blocks_per_sm = static_cast<int>(blocks),
                               .stages = kTensorCoreResiduesStages,
                               .depth = 128 / size_of(problem.operand_dtype),
                               .least_split = sides.left_along_depth ? 512 : 0,
                               .split = split});
  const ResidueTiling tiling = residue_tiling(sides.rows, sides.left_alignment, sides.left_along_depth, tile_rows);
  plan.blocks = tiling.tiles_down * (problem.d_major == Major::m ? plan.tiling.tiles_m : plan.tiling.tiles_n) * plan.split;
  return plan;
}

constexpr CudaGemmLaunch cuda_launch() {
  if constexpr (kHasCuda) return launch_tensor_core_residues;
  return nullptr;
}

}  // namespace

const GemmRow kTensorCoreResiduesRow = {.name = "tensor_core_residues",
                                        .backend = Backend::cuda,
                                        .tensor_cores = true,
                                        .tiles = kTensorCoreResiduesTiles,
                                        .own_refusal = refuse,
                                        .plan = plan,
                                        .launch_cuda = cuda_launch()};

}  // namespace tilewave
