// How tables name a plan (the row, the part of D that a block makes, and where blocks share its K) and a device's rates.
#pragma once

#include <string>

#include "kernels/core/device.h"
#include "kernels/core/error.h"
#include "kernels/gemm/plan.h"

namespace tilewave {

// "cluster_split_k/256x128/k2"
inline std::string row_text(const GemmPlan& plan) {
  return concat(plan.row, '/', plan.tile.m, 'x', plan.tile.n, plan.split > 1 ? concat("/k", plan.split) : std::string());
}

struct RateUnit {
  const char* unit;
  double scale;  // of FLOP/s
};
inline RateUnit rate_unit(Backend backend) { return backend == Backend::cuda ? RateUnit{"TFLOP/s", 1e-12} : RateUnit{"GFLOP/s", 1e-9}; }

}  // namespace tilewave
