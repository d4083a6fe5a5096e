// Adds to gemv_thread_rows: a warp a row. Its lanes read neighbours, so that each load is a whole line, and their sums meet by shuffles.
#pragma once

#include "kernels/gemm/gemv/gemv.h"

namespace tilewave {

inline constexpr Tile kGemvWarpRowsTiles[] = {{8, 1}, {1, 8}};

extern const GemmKernel kGemvWarpRowsKernel;
void launch_gemv_warp_rows(CudaQueue& queue, const GemmCall& call);

}  // namespace tilewave
