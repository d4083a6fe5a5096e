// Barriers of groups of whole warps within a block, which leave __syncthreads its own (PTX ISA, "bar").
#pragma once

namespace tilewave {

// All kThreads threads of group 0 to 14.
template <int kThreads>
__device__ __forceinline__ void sync_group(int group) {
  static_assert(kThreads % 32 == 0, "a barrier counts warps");
  asm volatile("bar.sync %0, %1;" ::"r"(1 + group), "n"(kThreads) : "memory");
}

}  // namespace tilewave
