// Adds to gemv_warp_rows: a CTA a row, so that a few long rows keep a GPU busy; its warps' sums meet in shared memory.
#pragma once

#include "kernels/gemm/gemv/gemv.h"

namespace tilewave {

inline constexpr Tile kGemvBlockRowsTiles[] = {{1, 1}};

extern const GemmKernel kGemvBlockRowsKernel;
void launch_gemv_block_rows(CudaQueue& queue, const GemmCall& call);

}  // namespace tilewave
