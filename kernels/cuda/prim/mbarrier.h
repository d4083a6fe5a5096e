// Barriers in shared memory that count arrivals and the bytes of bulk copies (PTX ISA, "mbarrier"). A phase ends when both counts
// are met; a waiter names the parity of the phase it waits for.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/prim/shared_address.h"
#include "kernels/cuda/prim/wait.h"

namespace tilewave {

struct Mbarrier {
  std::uint64_t state;
};

__device__ __forceinline__ void mbarrier_init(Mbarrier& barrier, unsigned arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&barrier)), "r"(arrivals) : "memory");
}

// So that it may be initialised again.
__device__ __forceinline__ void mbarrier_invalidate(Mbarrier& barrier) {
  asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(shared_address(&barrier)) : "memory");
}

// Every one of an array, or of an array of arrays.
template <class Barrier, std::size_t kCount>
__device__ __forceinline__ void mbarrier_init(Barrier (&barriers)[kCount], unsigned arrivals) {
  for (Barrier& barrier : barriers) mbarrier_init(barrier, arrivals);
}

// Makes initialised barriers known to TMA and to the other blocks of the cluster.
__device__ __forceinline__ void mbarrier_init_fence() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

__device__ __forceinline__ void mbarrier_arrive(Mbarrier& barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&barrier)) : "memory");
}

// Arrives, and lets the phase wait for that many bytes too.
__device__ __forceinline__ void mbarrier_arrive_expecting(Mbarrier& barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&barrier)), "r"(bytes) : "memory");
}

// Lets the phase wait for that many bytes more.
__device__ __forceinline__ void mbarrier_expect(Mbarrier& barrier, unsigned bytes) {
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&barrier)), "r"(bytes) : "memory");
}

// Arrives at the same barrier of the cluster's block `rank`. What the products read needs no release wider than the block's: the
// copies that overwrite it go through the same engines.
__device__ __forceinline__ void mbarrier_arrive_at(Mbarrier& barrier, unsigned rank) {
  asm volatile(
      "{\n"
      ".reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [there];\n"
      "}" ::"r"(shared_address(&barrier)),
      "r"(rank)
      : "memory");
}

__device__ __forceinline__ bool mbarrier_try_wait(Mbarrier& barrier, unsigned parity) {
  unsigned done;
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\n"
      "selp.u32 %0, 1, 0, done;\n"
      "}"
      : "=r"(done)
      : "r"(shared_address(&barrier)), "r"(parity)
      : "memory");
  return done != 0;
}

__device__ __forceinline__ void mbarrier_wait(Mbarrier& barrier, unsigned parity) {
  wait_until([&] { return mbarrier_try_wait(barrier, parity); },
             {.what = "the phase of the barrier in shared memory", .where = shared_address(&barrier), .value = parity});
}

// A walk over the stages of a ring: the parity flips with every round.
template <int kStages>
struct RingPosition {
  int stage = 0;
  unsigned parity = 0;

  __device__ __forceinline__ void advance() {
    if (++stage == kStages) {
      stage = 0;
      parity ^= 1;
    }
  }
  __device__ __forceinline__ void advance(std::int64_t steps) {
    const std::int64_t target = stage + steps;
    parity ^= static_cast<unsigned>(target / kStages) & 1u;
    stage = static_cast<int>(target % kStages);
  }
};

}  // namespace tilewave
