// How tables name a plan: the kernel, the part of D that a CTA makes, and where CTAs share its K.
#pragma once

#include <string>

#include "kernels/core/error.h"
#include "kernels/gemm/plan.h"

namespace tilewave {

// "cluster_split_k/256x128/k2"
inline std::string kernel_text(const GemmPlan& plan) {
  return concat(plan.row, '/', plan.tile.m, 'x', plan.tile.n, plan.split > 1 ? concat("/k", plan.split) : std::string());
}

// "4096x5120x1024"
inline std::string size_text(const GemmProblem& problem) { return concat(problem.m, 'x', problem.n, 'x', problem.k); }

}  // namespace tilewave
