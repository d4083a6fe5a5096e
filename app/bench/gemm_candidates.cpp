#include "app/bench/gemm_candidates.h"

#include <iostream>

#include "kernels/core/error.h"
#include "kernels/gemm/gemm.h"

namespace tilewave {

GemmCandidates::GemmCandidates(const Queue& queue, const DeviceInfo& device, const std::string& against, const GemmTypes& types)
    : scratch_(queue), device_(device), against_(against), types_(types) {
  if (against.empty()) return;
  if (device.backend == Backend::cpu) {
    TW_CHECK_INPUT(against == "openblas", "--against ", against, ": a CPU's peer is openblas.");
    blas_.emplace(static_cast<int>(device.sm_count));
    std::cerr << "OpenBLAS " << blas_->core() << ", " << device.sm_count << " threads\n";
    return;
  }
  library_ = find_gemm_kernel(Backend::cuda, against);
  TW_CHECK_INPUT(library_ != nullptr && library_->reference, "--against ", against,
                 ": a GPU's peers are cublas, cublas_gemv and cublaslt.");
}

void OurSide::keep(std::size_t best, std::mt19937_64& random) {  // candidates are in the model's order
  for (std::size_t i = best; i + 1 < candidates.size() && i < 2 * best; ++i) {
    std::swap(candidates[i], candidates[i + random() % (candidates.size() - i)]);
  }
  std::size_t place = 0;
  std::erase_if(candidates, [&](const Candidate& one) { return place++ >= 2 * best && !one.always_final; });
}

void GemmCandidates::check_peer(const GemmCase& asked) const {
  if (!blas_) return;
  const GemmProblem problem = problem_of(asked, types_);
  TW_CHECK_INPUT(problem.epilogue == Epilogue{} && problem.operand_dtype == DType::f32,
                 "--against openblas: it is compared in f32 on forward, dgrad and wgrad, not in ", name_of(problem.operand_dtype), " on ",
                 name_of(asked.form), ".");
}

std::shared_ptr<const GemmScratch::Posed> GemmCandidates::pose(const GemmProblem& problem) {
  std::shared_ptr<const GemmScratch::Posed> posed = posed_.lock();
  if (posed == nullptr || posed->problem != problem) posed = scratch_.pose(problem);
  posed_ = posed;
  return posed;
}

OurSide GemmCandidates::ours(const GemmCase& asked, const std::string& kernel, double slowest) {
  const GemmProblem problem = problem_of(asked, types_);
  OurSide side = {.problem = problem, .chosen = choose(problem, device_, {.forced = kernel}), .candidates = {}, .plans = {}};
  const auto posed = pose(problem);
  for (const GemmPlan& plan : measurable_plans(problem, device_, {.forced = kernel}, slowest)) {
    const std::string name = name_of(plan);
    side.plans[name] = plan;
    side.candidates.push_back(scratch_.candidate(posed, plan, name));
    side.candidates.back().always_final = plan == side.chosen;
  }
  return side;
}

// Row-major D^T = B^T A^T, which is what lies in memory.
Candidate GemmCandidates::openblas(const std::shared_ptr<const GemmScratch::Posed>& posed) const {
  using enum OpenBlas::Transpose;
  const auto launch_all = [this, posed](std::size_t) {
    const GemmProblem& p = posed->problem;
    for (const GemmArgs& set : posed->sets) {
      blas_->sgemm(p.b_major == Major::k ? no : yes, p.a_major == Major::k ? yes : no, p.n, p.m, p.k, static_cast<const float*>(set.b.data),
                   set.b.ld, static_cast<const float*>(set.a.data), set.a.ld, 0.0F, static_cast<float*>(set.d.data), set.d.ld);
    }
  };
  return {.name = "openblas", .launch = launch_all, .launches = posed->sets.size()};
}

PeerSide GemmCandidates::peers(const GemmCase& asked) {
  const GemmProblem problem = problem_of(asked, types_);
  if (blas_) return {.candidates = {openblas(pose(problem))}, .absent = {}};
  PeerSide side = {.candidates = {}, .absent = library_->refuse(problem, device_)};
  if (!side.absent.empty()) return side;
  const auto posed = pose(problem);
  GemmPlan plan = library_->plan(problem, library_->tiles.front(), device_, 0);
  for (const int count = scratch_.library_candidates(*library_, *posed); plan.algorithm < count; ++plan.algorithm) {
    side.candidates.push_back(scratch_.candidate(posed, plan, concat(against_, " ", plan.algorithm)));
    side.candidates.back().always_final = plan.algorithm == 0;
  }
  if (side.candidates.empty()) side.absent = "its heuristic has no candidate.";
  return side;
}

}  // namespace tilewave
