// Every GEMM row of every back end, in the order of the ladder: each adds one idea to the one before.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "kernels/gemm/row.h"

namespace tilewave {

std::span<const GemmRow* const> gemm_catalog();

// The back end's row of that name, or null. (Each back end has an oracle, naive.)
const GemmRow* find_gemm_row(Backend backend, std::string_view name);
// The first row of that name on any back end, or null.
const GemmRow* find_gemm_row(std::string_view name);

// Each name once, in the catalog's order.
std::vector<std::string_view> gemm_row_names();

}  // namespace tilewave
