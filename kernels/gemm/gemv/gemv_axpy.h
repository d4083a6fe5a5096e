// A matrix across K times a few vectors, fp32 and fp64: as K goes on, each step adds a row of memory times a number to every vector's sums.
#pragma once

#include "kernels/gemm/gemv/gemv.h"

namespace tilewave {

// A warp reads lines of 128 bytes of four steps of K at once, eight lanes each.
inline constexpr int kGemvLine = 128, kGemvLineLanes = 8;
inline constexpr int kGemvAxpyDepth = 32;  // of K that a warp takes at a time, a lane eight of it
// How many vectors the kernel that runs so many is compiled for, and how many steps of K a lane asks for at once.
constexpr int gemv_axpy_columns(std::int64_t vectors) { return vectors <= 1 ? 1 : vectors <= 4 ? 4 : vectors <= 8 ? 8 : 16; }
constexpr int gemv_axpy_steps(int columns, bool anywhere) { return anywhere || columns == 16 ? 4 : 8; }
inline constexpr Tile kGemvAxpyTiles[] = {{32, 16}, {64, 16}, {128, 16}, {16, 32}, {16, 64}, {16, 128}};

extern const GemmKernel kGemvAxpyKernel;
void launch_gemv_axpy(CudaQueue& queue, const GemmCall& call);

}  // namespace tilewave
