// Blocks of a cluster, warpgroups of a block: who am I, wait for the others, hand registers over (PTX ISA, "barrier.cluster",
// "bar", "elect", "setmaxnreg", "griddepcontrol").
#pragma once

#include "kernels/cuda/prim/mbarrier.h"

namespace tilewave {

inline constexpr int kWarpgroup = 128;  // threads

// The first lane's, known to the compiler as the whole warp's: it can be in a uniform register then, where TMA's coordinates
// have to be, and a branch on it is the warp's.
__device__ __forceinline__ int of_warp(int value) { return __shfl_sync(0xffffffffu, value, 0); }

// The thread's warpgroup in its block.
__device__ __forceinline__ int warpgroup_rank() { return of_warp(static_cast<int>(threadIdx.x) / kWarpgroup); }

__device__ __forceinline__ unsigned cluster_rank() {
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// The block's cluster in the launch, where clusters have one block or two: dividing by what only the launch knows takes some 200 cycles,
// and loads wait for them.
__device__ __forceinline__ int cluster_of_cta(int blocks) {
  const auto block = static_cast<int>(blockIdx.x);
  return blocks == 1 ? block : block / 2;
}

// The thread's warp in its block.
__device__ __forceinline__ int warp_rank() { return of_warp(static_cast<int>(threadIdx.x) / 32); }

// One lane of a warp whose lanes have all come, ever the same one, and the compiler knows that it is one: boxes are asked for without a
// loop over lanes.
__device__ __forceinline__ bool elect_lane() {
  unsigned elected;
  asm volatile(
      "{\n"
      ".reg .pred elected;\n"
      "elect.sync _|elected, 0xffffffff;\n"
      "selp.u32 %0, 1, 0, elected;\n"
      "}"
      : "=r"(elected));
  return elected != 0;
}
// That lane of the block's warp `warp`.
__device__ __forceinline__ bool elect_lane_of(int warp) { return warp_rank() == warp && elect_lane(); }

// The SM that the block runs on, less than the device's count.
__device__ __forceinline__ unsigned sm_number() {
  unsigned sm;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  return sm;
}

// Every thread of every block of the cluster; without a cluster, of the block.
__device__ __forceinline__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}

// The same where nothing but arrival counts: what threads wrote before may come to be known later.
__device__ __forceinline__ void cluster_sync_relaxed() {
  asm volatile("barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;" ::: "memory");
}

// kThreads threads of a block, whole warps; __syncthreads has a barrier of its own.
template <int kThreads>
__device__ __forceinline__ void sync_warps() {
  asm volatile("bar.sync 1, %0;" ::"n"(kThreads) : "memory");
}
// The warpgroup number `which` of several that meet each by itself.
__device__ __forceinline__ void sync_warpgroup(int which) { asm volatile("bar.sync %0, 128;" ::"r"(1 + which) : "memory"); }

// Two warpgroups that go one after the other: the second waits until the first has come by, which does not wait for it. `which` is a
// barrier of their own, none of those above.
inline constexpr int kFirstOrderBarrier = 8;
__device__ __forceinline__ void order_barrier_arrive(int which) {
  asm volatile("bar.arrive %0, 256;" ::"r"(kFirstOrderBarrier + which) : "memory");
}
__device__ __forceinline__ void order_barrier_wait(int which) {
  asm volatile("bar.sync %0, 256;" ::"r"(kFirstOrderBarrier + which) : "memory");
}

// A kernel launched to begin while the one before it ends: until that one's results are there ("griddepcontrol"). The next one may
// begin then too, and finds room as blocks leave.
__device__ __forceinline__ void wait_for_previous_kernel() {
  asm volatile("griddepcontrol.wait;\ngriddepcontrol.launch_dependents;" ::: "memory");
}

// Where the same place is in the shared memory of the cluster's block `rank`.
using CtaAddress = std::uint32_t;
__device__ __forceinline__ CtaAddress address_in_cta(const void* here, unsigned rank) {
  CtaAddress there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(shared_address(here)), "r"(rank));
  return there;
}
// To such an address; a phase of a barrier of that block's waits for the bytes.
__device__ __forceinline__ void store_in_cta(CtaAddress there, float4 value, CtaAddress barrier) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(there), "f"(value.x),
               "f"(value.y), "f"(value.z), "f"(value.w), "r"(barrier)
               : "memory");
}

// From the same place in the shared memory of the cluster's block `rank`.
__device__ __forceinline__ float4 load_from_cta(const float4& here, unsigned rank) {
  float4 there;
  asm volatile(
      "{\n"
      ".reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %4, %5;\n"
      "ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [there];\n"
      "}"
      : "=f"(there.x), "=f"(there.y), "=f"(there.z), "=f"(there.w)
      : "r"(shared_address(&here)), "r"(rank)
      : "memory");
  return there;
}
__device__ __forceinline__ float load_from_cta(const float& here, unsigned rank) {
  float there;
  asm volatile(
      "{\n"
      ".reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %1, %2;\n"
      "ld.shared::cluster.f32 %0, [there];\n"
      "}"
      : "=f"(there)
      : "r"(shared_address(&here)), "r"(rank)
      : "memory");
  return there;
}

// What a warpgroup gives up, another may take; both counts are multiples of 8.
template <int kRegisters>
__device__ __forceinline__ void reg_dealloc() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ __forceinline__ void reg_alloc() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

}  // namespace tilewave
