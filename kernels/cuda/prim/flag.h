// Flags in device memory by which a warp of one block hands memory to a warp of another (PTX ISA, "memory consistency model"): what
// the setting warp wrote before, with ordinary stores or through the copy engine, the waiting warp sees after. A warp may wait only
// for a block that was launched before its own, or in a grid whose blocks all run at once.
#pragma once

#include <cstdint>

#include "kernels/cuda/prim/bulk_copy.h"
#include "kernels/cuda/prim/wait.h"

namespace tilewave {

// Until the flag has that value.
__device__ __forceinline__ void wait_for_flag(const unsigned* flag, unsigned value) {
  if (threadIdx.x % 32 == 0) {
    const auto load = [&] {
      unsigned now;
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(flag) : "memory");
      return now;
    };
    wait_until([&] { return load() == value; },
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
  __threadfence();
  __syncwarp();
  if (threadIdx.x % 32 == 0) asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}

// One more, once everything that the warp has written with ordinary stores is there.
__device__ __forceinline__ void add_to_flag(unsigned* flag) {
  __threadfence();
  __syncwarp();
  if (threadIdx.x % 32 == 0) asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(flag) : "memory");
}

}  // namespace tilewave
