// Flags in device memory by which a warp of one block hands memory to a warp of another (PTX ISA, "memory consistency model"): what
// the setting warp wrote before, with ordinary stores or through the copy engine, the waiting warp sees after. A warp may wait only
// for a block that was launched before its own, or in a grid whose blocks all run at once. One lane releases for its warp: what the others
// wrote before they met it at __syncwarp comes with it, since a release is cumulative. Flags are zeros when a kernel begins, and again
// when it ends: whoever waits last clears them.
#pragma once

#include <cstdint>

#include "kernels/cuda/prim/bulk_copy.h"
#include "kernels/cuda/prim/wait.h"

namespace tilewave {

// Until the flag, or what `mask` leaves of it, has that value.
__device__ __forceinline__ void wait_for_flag(const unsigned* flag, unsigned value, unsigned mask = ~0u) {
  if (threadIdx.x % 32 == 0) {
    const auto load = [&] {
      unsigned now;
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(flag) : "memory");
      return now;
    };
    wait_until([&] { return (load() & mask) == value; },
               {.what = "the flag in device memory", .where = reinterpret_cast<std::uint64_t>(flag), .value = value});
    asm volatile("fence.proxy.async;" ::: "memory");  // what follows may go through the copy engine
  }
  __syncwarp();
}

// Once everything that the warp has written is there, through the copy engine too.
__device__ __forceinline__ void set_flag(unsigned* flag, unsigned value) {
  if (threadIdx.x % 32 == 0) {
    wait_boxes<0>();
    asm volatile("fence.proxy.async;" ::: "memory");
  }
  __syncwarp();
  if (threadIdx.x % 32 == 0) asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}

// For the warp that waits last.
__device__ __forceinline__ void clear_flag(unsigned* flag) {
  if (threadIdx.x % 32 == 0) *flag = 0;
}

// Flags that several add to and several wait for: the lower half counts the former, the upper the latter.
inline constexpr unsigned kAdded = 0xffff, kWaiter = 0x10000;

// One more, once everything that the warp has written with ordinary stores is there.
__device__ __forceinline__ void add_to_flag(unsigned* flag) {
  __syncwarp();
  if (threadIdx.x % 32 == 0) asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(flag) : "memory");
}
// Until `added` have; one of `waiters` that do this.
__device__ __forceinline__ void wait_for_added(unsigned* flag, unsigned added, unsigned waiters) {
  wait_for_flag(flag, added, kAdded);
  if (threadIdx.x % 32 == 0 && atomicAdd(flag, kWaiter) / kWaiter + 1 == waiters) *flag = 0;
}

}  // namespace tilewave
