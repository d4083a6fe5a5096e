// Two epilogues that no problem has both of.
#include "kernels/gemm/sm90/persistent_deferred.h"

#include <algorithm>

#include "kernels/core/queue.h"
#include "kernels/gemm/facts/has_cuda.h"

namespace tilewave {
namespace {

bool derives(const GemmProblem& problem) { return problem.epilogue.derivative != Activation::none; }

bool has_derivative_tile(Tile tile) { return std::ranges::count(kPersistentDeferredDerivativeTiles, tile) > 0; }

bool suits(const GemmProblem& problem, Tile tile) { return !derives(problem) || has_derivative_tile(tile); }

std::string refuse(const GemmProblem& problem, const DeviceInfo& device) {
  return derives(problem) ? refuse_deferred_derivative(problem, device) : refuse_deferred_store(problem, device);
}

GemmPlan plan(const GemmProblem& problem, Tile tile, const DeviceInfo& device, int) {
  return derives(problem) ? plan_deferred_derivative(problem, tile, device) : plan_deferred_store(problem, tile, device);
}

}  // namespace

std::int64_t persistent_deferred_shared_bytes(Tile tile) {
  return std::max(persistent_deferred_store_shared_bytes(tile),
                  has_derivative_tile(tile) ? persistent_deferred_derivative_shared_bytes(tile) : 0);
}

const GemmKernel kPersistentDeferredKernel = {.composition = {.kernel = "persistent", .epilogue = EpilogueTiming::deferred},
                                              .backend = Backend::cuda,
                                              .tensor_cores = true,
                                              .tiles = kPersistentDeferredStoreTiles,
                                              .suits = suits,
                                              .shared_bytes = persistent_deferred_shared_bytes,
                                              .own_refusal = refuse,
                                              .own_plan = plan,
                                              .launch_cuda = cuda_launch<launch_persistent_deferred>()};

}  // namespace tilewave
