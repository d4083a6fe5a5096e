// Model: a lane has two elements on their way at a time, as measured on an H200.
#include "kernels/gemm/gemv/gemv_warp_rows.h"

#include "kernels/core/queue.h"
#include "kernels/gemm/facts/has_cuda.h"

namespace tilewave {
namespace {

GemmPlan plan(const GemmProblem& problem, Tile tile, const DeviceInfo& device, int) {
  return plan_gemv_rung(problem, tile, device, {.depth = std::int64_t{32} * 2});
}

}  // namespace

const GemmKernel kGemvWarpRowsKernel = {.composition = {.kernel = "gemv_warp_rows"},
                                        .backend = Backend::cuda,
                                        .ladder = true,
                                        .tiles = kGemvWarpRowsTiles,
                                        .suits = suits_matrix_along_k,
                                        .own_refusal = refuse_gemv_rung,
                                        .own_plan = plan,
                                        .launch_cuda = cuda_launch<launch_gemv_warp_rows>()};

}  // namespace tilewave
