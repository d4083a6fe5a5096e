// Model: each thread asks for one element of its row after the other. Most of them lie in the line that it asked for last, and even so some
// 280 cycles pass between two (measured on an H200): a round has five.
#include "kernels/gemm/gemv/gemv_thread_rows.h"

#include "kernels/core/queue.h"
#include "kernels/gemm/facts/has_cuda.h"

namespace tilewave {
namespace {

GemmPlan plan(const GemmProblem& problem, Tile tile, const DeviceInfo& device, int) {
  return plan_gemv_rung(problem, tile, device, {.depth = 5});
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
