// A plan as tables name it: the row, the part of D that a block makes, and where blocks share its K.
#pragma once

#include <string>

#include "kernels/error.h"
#include "kernels/gemm/plan.h"

namespace tilewave {

// "cluster_split_k/256x128/k2"
inline std::string row_text(const GemmPlan& plan) {
  return sentence(plan.row, '/', plan.tile.m, 'x', plan.tile.n, plan.split > 1 ? sentence("/k", plan.split) : std::string());
}

}  // namespace tilewave
