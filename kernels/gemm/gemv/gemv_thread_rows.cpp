// Model: each thread brings a line of 128 bytes of its row at a time, and finds the rest of it in the first-level cache.
#include "kernels/gemm/gemv/gemv_thread_rows.h"

#include "kernels/core/queue.h"
#include "kernels/gemm/facts/has_cuda.h"

namespace tilewave {
namespace {

GemmPlan plan(const GemmProblem& problem, Tile tile, const DeviceInfo& device, int) {
  return plan_gemv_rung(problem, tile, device, {.depth = 128 / size_of(problem.operand_dtype)});
}

}  // namespace

const GemmKernel kGemvThreadRowsKernel = {.composition = {.kernel = "gemv_thread_rows"},
                                          .backend = Backend::cuda,
                                          .ladder = true,
                                          .tiles = kGemvThreadRowsTiles,
                                          .suits = suits_matrix_along_k,
                                          .own_refusal = refuse_gemv_rung,
                                          .own_plan = plan,
                                          .launch_cuda = cuda_launch<launch_gemv_thread_rows>()};

}  // namespace tilewave
