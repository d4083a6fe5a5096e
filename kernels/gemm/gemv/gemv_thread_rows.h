// A matrix along K times a vector, the first rung: a thread a row.
#pragma once

#include "kernels/gemm/gemv/gemv.h"

namespace tilewave {

inline constexpr Tile kGemvThreadRowsTiles[] = {{256, 1}, {1, 256}};

extern const GemmKernel kGemvThreadRowsKernel;
void launch_gemv_thread_rows(CudaQueue& queue, const GemmCall& call);

}  // namespace tilewave
