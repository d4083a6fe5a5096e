// Asynchronous copies from global to shared memory (PTX ISA, cp.async): a thread's copies since its last commit are a group.
#pragma once

#include <cstdint>

#include "kernels/cuda/prim/shared_address.h"

namespace tilewave {

// `bytes` of kBytes come from global memory, the rest is zero; 16-byte copies go past the first-level cache.
template <int kBytes>
__device__ __forceinline__ void cp_async(std::uint32_t shared, const void* global, int bytes) {
  static_assert(kBytes == 4 || kBytes == 8 || kBytes == 16, "cp.async copies 4, 8 or 16 bytes");
  if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(shared), "l"(global), "r"(bytes) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared), "l"(global), "n"(kBytes), "r"(bytes) : "memory");
  }
}

// All kBytes come from global memory.
template <int kBytes>
__device__ __forceinline__ void cp_async(std::uint32_t shared, const void* global) {
  static_assert(kBytes == 16, "what is narrower comes with a number of bytes");
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(shared), "l"(global) : "memory");
}

__device__ __forceinline__ void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until at most kPending of this thread's groups are under way.
template <int kPending>
__device__ __forceinline__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

}  // namespace tilewave
