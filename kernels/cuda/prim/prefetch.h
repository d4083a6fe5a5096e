// Asks the second-level cache for what will be read soon (PTX ISA, "prefetch").
#pragma once

namespace tilewave {

__device__ __forceinline__ void prefetch_to_l2(const void* at) { asm volatile("prefetch.global.L2 [%0];" ::"l"(at)); }

}  // namespace tilewave
