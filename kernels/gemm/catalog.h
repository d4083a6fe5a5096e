// Every GEMM row of every back end, in the order of the ladder: each adds one idea to the one before.
#pragma once

#include <span>
#include <string_view>

#include "kernels/gemm/row.h"

namespace tilewave {

std::span<const GemmRow* const> gemm_catalog();

// The row of that name, or null.
const GemmRow* find_gemm_row(std::string_view name);

}  // namespace tilewave
