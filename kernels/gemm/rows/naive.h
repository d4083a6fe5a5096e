// The oracle: every dtype, major and epilogue, sums in fp64, never optimised.
#pragma once

#include "kernels/gemm/row.h"

namespace tilewave {

inline constexpr Tile kNaiveTiles[] = {{1, 1}};
inline constexpr std::int64_t kCudaNaiveBlock = 128;  // outputs, a thread's each

extern const GemmRow kNaiveRow, kCudaNaiveRow;
void launch_naive(CpuQueue& queue, const GemmArgs& args, const GemmPlan& plan);
void launch_naive(CudaQueue& queue, const GemmArgs& args, const GemmPlan& plan);

}  // namespace tilewave
