// Waiting by asking again. With TILEWAVE_TRAPPING_WAITS (CMake's option; ptxas then serialises wgmma) a wait has a bound: a kernel
// that would hang says which thread waits for what, and traps.
#pragma once

#include <cstdint>
#ifdef TILEWAVE_TRAPPING_WAITS
#include <cstdio>
#endif

namespace tilewave {

// What a wait is for, in the words of its report: `what`, at the address `where`, has to become `value`.
struct Awaited {
  const char* what = "";
  std::uint64_t where = 0;
  unsigned value = 0;
};

template <class Done>
__device__ __forceinline__ void wait_until(Done&& done, [[maybe_unused]] const Awaited& awaited) {
#ifndef TILEWAVE_TRAPPING_WAITS
  while (!done()) {
  }
#else
  constexpr std::int64_t kMaxNanoseconds = 2'000'000'000;
  const auto now = [] {
    std::int64_t time;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
    return time;
  };
  for (const std::int64_t start = now(); !done();) {
    if (now() - start < kMaxNanoseconds) continue;
    printf("block %u, thread %u: %s at 0x%llx has not become %u in 2 s\n", blockIdx.x, threadIdx.x, awaited.what,
           static_cast<unsigned long long>(awaited.where), awaited.value);
    __trap();
  }
#endif
}

}  // namespace tilewave
