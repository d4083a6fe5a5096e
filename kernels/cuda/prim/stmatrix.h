// Four 8x8 matrices of 16-bit elements from a warp's registers to shared memory (PTX ISA, "stmatrix"): thread t holds elements
// 2 (t % 4) and the next of row t / 4 of each matrix, as an accumulator does; it names the address of row t % 8 of matrix t / 8.
#pragma once

#include "kernels/cuda/prim/shared_address.h"

namespace tilewave {

__device__ __forceinline__ void store_matrices(void* row, unsigned m0, unsigned m1, unsigned m2, unsigned m3) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared_address(row)), "r"(m0), "r"(m1), "r"(m2),
               "r"(m3)
               : "memory");
}
// The same, each matrix transposed: the address of row r is where its column r goes.
__device__ __forceinline__ void store_matrices_transposed(void* row, unsigned m0, unsigned m1, unsigned m2, unsigned m3) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared_address(row)), "r"(m0), "r"(m1),
               "r"(m2), "r"(m3)
               : "memory");
}

}  // namespace tilewave
