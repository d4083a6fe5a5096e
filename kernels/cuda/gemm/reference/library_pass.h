// The device's part of the reference rows, behind plain functions: NVIDIA's libraries are driven from a host compiler's file.
#pragma once

#include "kernels/gemm/gemm.h"

namespace tilewave {

struct CudaQueue;

// Where a library writes its product: D itself (straight), or the sums behind its workspace, which finish_library then finishes.
struct LibraryTarget {
  void* data = nullptr;
  std::int64_t ld = 0;
  DType dtype = DType::f32;
  bool accumulate = false;
};
LibraryTarget library_target(const GemmArgs& args, bool straight);

// What follows the product: the bias gradient and, where the product did not go straight into D, the epilogue.
void finish_library(CudaQueue& queue, const GemmArgs& args, bool straight);

}  // namespace tilewave
