// Model: a thread asks for four elements at a time.
#include "kernels/gemm/gemv/gemv_block_rows.h"

#include "kernels/core/queue.h"
#include "kernels/gemm/facts/has_cuda.h"

namespace tilewave {
namespace {

GemmPlan plan(const GemmProblem& problem, Tile tile, const DeviceInfo& device, int) {
  return plan_gemv_rung(problem, tile, device, {.depth = std::int64_t{32} * kGemvWarps * 4, .round_share = 0.05});
}

}  // namespace

const GemmKernel kGemvBlockRowsKernel = {.composition = {.kernel = "gemv_block_rows"},
                                         .backend = Backend::cuda,
                                         .tiles = kGemvBlockRowsTiles,
                                         .suits = suits_matrix_along_k,
                                         .own_refusal = refuse_gemv_rung,
                                         .own_plan = plan,
                                         .launch_cuda = cuda_launch<launch_gemv_block_rows>()};

}  // namespace tilewave
