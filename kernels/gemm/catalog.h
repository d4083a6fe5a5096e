// Every GEMM kernel of every back end, in the order of the ladder: each adds one idea to the one before.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "kernels/gemm/kernel.h"

namespace tilewave {

std::span<const GemmKernel* const> gemm_catalog();

// The back end's kernel of that name, which may be one of earlier versions, or null. (Each back end has an oracle, naive.)
const GemmKernel* find_gemm_kernel(Backend backend, std::string_view name);
// The first of that name on any back end, or null.
const GemmKernel* find_gemm_kernel(std::string_view name);
// The back end's kernel of that composition, or null.
const GemmKernel* find_gemm_kernel(Backend backend, const GemmComposition& composition);
// The plan's kernel on the back end. Throws where it has none.
const GemmKernel& kernel_of(Backend backend, const GemmPlan& plan);

inline std::string name_of(const GemmKernel& kernel) { return name_of(kernel.composition); }

// Each name once, in the catalog's order.
std::vector<std::string> gemm_kernel_names();

}  // namespace tilewave
