// How tables name a product.
#pragma once

#include <string>

#include "kernels/core/error.h"
#include "kernels/gemm/problem.h"

namespace tilewave {

// "4096x5120x1024"
inline std::string size_text(const GemmProblem& problem) { return concat(problem.m, 'x', problem.n, 'x', problem.k); }

}  // namespace tilewave
