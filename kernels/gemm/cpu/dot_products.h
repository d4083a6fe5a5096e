// For few tokens: each output is the dot product of two rows as they lie in memory. Nothing is packed, so that each weight
// is read once and that is all.
#pragma once

#include "kernels/gemm/kernel.h"

namespace tilewave {

inline constexpr Tile kDotProductsTiles[] = {{64, 8}};

extern const GemmKernel kDotProductsKernel;
void launch_dot_products(CpuQueue& queue, const GemmCall& call);

}  // namespace tilewave
