// A matrix along K times a few vectors: words of 16 bytes, several rows a warp, every type on CUDA cores. The last rung of the GEMV ladder.
#pragma once

#include "kernels/gemm/gemv/gemv.h"

namespace tilewave {

// The most vectors of a type.
constexpr std::int64_t gemv_dot_vectors(DType dtype) { return size_of(dtype) == 2 ? 8 : kMaxVectors; }
// How many vectors the kernel that runs so many of a type is compiled for. fp32 has one for every power of two.
constexpr int gemv_columns(std::int64_t vectors, DType dtype) {
  if (size_of(dtype) == 2) return vectors <= 1 ? 1 : 8;
  if (dtype == DType::f64) return vectors <= 1 ? 1 : vectors <= 4 ? 4 : 16;
  return vectors <= 1 ? 1 : vectors <= 2 ? 2 : vectors <= 4 ? 4 : vectors <= 8 ? 8 : 16;
}
// Rows of a warp, whose sums and those of so many vectors fit a lane's registers.
constexpr int gemv_dot_rows(int columns, DType dtype) {
  const int rows = (dtype == DType::f32 ? 64 : 32) / columns;
  return rows > 8 ? 8 : rows;
}
// Words of each of these rows that a lane asks for at once. Rows that begin anywhere need two words of memory for one of theirs.
constexpr int gemv_dot_steps(int columns, DType dtype, bool anywhere) { return dtype == DType::f32 && columns <= 2 && !anywhere ? 2 : 1; }

extern const GemmKernel kGemvDotKernel;
void launch_gemv_dot(CudaQueue& queue, const GemmCall& call);

}  // namespace tilewave
