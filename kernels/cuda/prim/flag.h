// Flags in device memory by which warps of one block hand memory to another block (PTX ISA, "memory consistency model"): what a warp
// wrote before it added to the flag, whoever waits sees after. A block may wait only for one that was launched before it, or in a grid
// whose blocks all run at once. One lane releases for its warp: what the others wrote before they met it at __syncwarp comes with it, since
// a release is cumulative. Flags are zeros when a kernel begins, and again when it ends: whoever waits last clears them.
#pragma once

#include <cstdint>

#include "kernels/cuda/prim/bulk_copy.h"
#include "kernels/cuda/prim/wait.h"

namespace tilewave {

// Those that several wait for: the lower half counts who have added, the upper who have waited.
inline constexpr unsigned kAdded = 0xffff, kWaiter = 0x10000;

// One more, once everything that the warp has written with ordinary stores is there.
__device__ __forceinline__ void add_to_flag(unsigned* flag) {
  __syncwarp();
  if (threadIdx.x % 32 == 0) asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(flag) : "memory");
}
// The same once what it sent through TMA is there too.
__device__ __forceinline__ void add_to_flag_after_tma_stores(unsigned* flag) {
  if (threadIdx.x % 32 == 0) {
    tma_store_wait<0>();
    fence_proxy_async();
  }
  add_to_flag(flag);
}

// One thread's: until `added` have.
__device__ __forceinline__ void wait_until_added(const unsigned* flag, unsigned added) {
  const auto load = [&] {
    unsigned now;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(flag) : "memory");
    return now;
  };
  wait_until([&] { return (load() & kAdded) == added; },
             {.what = "the flag in device memory", .where = reinterpret_cast<std::uint64_t>(flag), .value = added});
}
// The same for the thread that alone waits, and goes on to TMA.
__device__ __forceinline__ void wait_for_added(unsigned* flag, unsigned added) {
  wait_until_added(flag, added);
  *flag = 0;
  fence_proxy_async();
}
// A warp's, one of `waiters`.
__device__ __forceinline__ void wait_for_added(unsigned* flag, unsigned added, unsigned waiters) {
  if (threadIdx.x % 32 == 0) {
    wait_until_added(flag, added);
    if (atomicAdd(flag, kWaiter) / kWaiter + 1 == waiters) *flag = 0;
  }
  __syncwarp();
}

}  // namespace tilewave
