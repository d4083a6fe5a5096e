// Every GEMM kernel of every back end, in the order of the ladder: each adds one idea to the one before.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "kernels/gemm/kernel.h"

namespace tilewave {

std::span<const GemmKernel* const> gemm_catalog();

// The back end's row of that name, or null. (Each back end has an oracle, naive.)
const GemmKernel* find_gemm_kernel(Backend backend, std::string_view name);
// The first row of that name on any back end, or null.
const GemmKernel* find_gemm_kernel(std::string_view name);

// Each name once, in the catalog's order.
std::vector<std::string_view> gemm_kernel_names();

}  // namespace tilewave
