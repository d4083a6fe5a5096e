// NVIDIA's libraries as rows to compare with: opened when first used, never chosen unless forced. What they cannot fuse follows as a
// pass of our own, so that the problem is the same.
#pragma once

#include "kernels/gemm/kernel.h"

namespace tilewave {

inline constexpr Tile kLibraryTiles[] = {{1, 1}};  // the library keeps its own to itself
inline constexpr std::int64_t kLibraryWorkspace = 64ll << 20;

// The plan's workspace: the library's own, then, where the epilogue follows as a pass, the sums as split.h lays out one part.
std::int64_t library_sums_bytes(const GemmProblem& problem);

extern const GemmKernel kCublasKernel, kCublasGemvKernel, kCublasLtKernel;
void launch_cublas(CudaQueue& queue, const GemmCall& call);
void launch_cublas_gemv(CudaQueue& queue, const GemmCall& call);  // a matrix times one vector
void launch_cublaslt(CudaQueue& queue, const GemmCall& call);
int cublaslt_candidates(CudaQueue& queue, const GemmArgs& args);

}  // namespace tilewave
