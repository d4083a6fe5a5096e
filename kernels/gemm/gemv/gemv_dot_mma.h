// A matrix along K times a few vectors, 16 bits: what words of 16 bytes bring is multiplied by Tensor Cores straight from registers.
#pragma once

#include "kernels/gemm/gemv/gemv.h"

namespace tilewave {

inline constexpr int kGemvDotMmaRows = 16;   // of an MMA
inline constexpr int kGemvDotMmaDepth = 32;  // of K, that a lane's words of a row have in a warp
inline constexpr int kGemvDotMmaSteps = 4;   // of these at a time, where all lies in words of 16 bytes; else half of them

// How many columns of vectors the kernel that runs so many is compiled for, and how many of its CTAs an SM has registers for.
constexpr int gemv_dot_mma_columns(std::int64_t vectors) { return vectors <= 8 ? 8 : 16; }
constexpr int gemv_dot_mma_ctas(int columns) { return columns == 8 ? 3 : 2; }

extern const GemmKernel kGemvDotMmaKernel;
void launch_gemv_dot_mma(CudaQueue& queue, const GemmCall& call);

}  // namespace tilewave
