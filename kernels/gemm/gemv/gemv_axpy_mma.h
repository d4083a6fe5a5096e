// A matrix across K times a few vectors, 16 bits: Tensor Cores multiply what words of 16 bytes bring, once lanes have paired it along K.
#pragma once

#include "kernels/gemm/gemv/gemv.h"

namespace tilewave {

inline constexpr int kGemvAxpyMmaRows = 64;   // of a line of 128 bytes
inline constexpr int kGemvAxpyMmaDepth = 32;  // of K that a warp takes at a time, a lane eight of it
inline constexpr Tile kGemvAxpyMmaTiles[] = {{64, 16}, {128, 16}, {16, 64}, {16, 128}};

// How many columns of vectors the kernel that runs so many is compiled for; sums of the matrix over K are one more.
constexpr int gemv_axpy_mma_columns(std::int64_t vectors, bool sums_matrix) { return vectors + (sums_matrix ? 1 : 0) <= 8 ? 8 : 16; }

extern const GemmKernel kGemvAxpyMmaKernel;
void launch_gemv_axpy_mma(CudaQueue& queue, const GemmCall& call);

}  // namespace tilewave
