// TMA (PTX ISA, "cp.async.bulk.tensor"): one thread moves a box of a matrix between global and shared memory. The
// tensor map knows the matrix and the box; what lies outside the matrix is read as zeros and not written. x runs along a row.
#pragma once

#include <cuda.h>

#include "kernels/cuda/prim/mbarrier.h"

namespace tilewave {

__device__ __forceinline__ void prefetch_tensor_map(const CUtensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

// Global to shared; the barrier counts the bytes.
__device__ __forceinline__ void tma_load(void* to, const CUtensorMap& map, Mbarrier& barrier, int x, int y) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(
                   shared_address(to)),
               "l"(&map), "r"(shared_address(&barrier)), "r"(x), "r"(y)
               : "memory");
}

// A box of a matrix whose rows are seen in eights: of those from `eight` on, each one's rows from `y` on.
__device__ __forceinline__ void tma_load_3d(void* to, const CUtensorMap& map, Mbarrier& barrier, int x, int y, int eight) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];" ::"r"(
                   shared_address(to)),
               "l"(&map), "r"(shared_address(&barrier)), "r"(x), "r"(y), "r"(eight)
               : "memory");
}

// The same into every block of the cluster named in `blocks`, at the same place, counted by each one's own barrier.
__device__ __forceinline__ void tma_load_multicast(void* to, const CUtensorMap& map, Mbarrier& barrier, int x, int y,
                                                   std::uint16_t blocks) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%3, %4}], [%2], "
      "%5;" ::"r"(shared_address(to)),
      "l"(&map), "r"(shared_address(&barrier)), "r"(x), "r"(y), "h"(blocks)
      : "memory");
}
__device__ __forceinline__ void tma_load_3d_multicast(void* to, const CUtensorMap& map, Mbarrier& barrier, int x, int y, int eight,
                                                      std::uint16_t blocks) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%3, %4, %5}], [%2], "
      "%6;" ::"r"(shared_address(to)),
      "l"(&map), "r"(shared_address(&barrier)), "r"(x), "r"(y), "r"(eight), "h"(blocks)
      : "memory");
}

// A line of memory, global to shared: both ends and the bytes are multiples of 16.
__device__ __forceinline__ void tma_load_1d(void* to, const void* from, unsigned bytes, Mbarrier& barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared_address(to)),
               "l"(from), "r"(bytes), "r"(shared_address(&barrier))
               : "memory");
}

// The same no further than the second-level cache.
__device__ __forceinline__ void tma_prefetch_1d(const void* from, unsigned bytes) {
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(bytes) : "memory");
}

// Shared to global.
__device__ __forceinline__ void tma_store(const CUtensorMap& map, const void* from, int x, int y) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];" ::"l"(&map), "r"(shared_address(from)),
               "r"(x), "r"(y)
               : "memory");
}

// Adds to what is there, in the memory's own type: each element once, so the result does not depend on an order.
__device__ __forceinline__ void tma_reduce_add(const CUtensorMap& map, const void* from, int x, int y) {
  asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {%2, %3}], [%1];" ::"l"(&map),
               "r"(shared_address(from)), "r"(x), "r"(y)
               : "memory");
}

__device__ __forceinline__ void tma_store_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

// Until all but the last kPending committed groups have been read out of shared memory.
template <int kPending>
__device__ __forceinline__ void tma_store_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kPending) : "memory");
}

// Until all but the last kPending committed groups have been written where they go.
template <int kPending>
__device__ __forceinline__ void tma_store_wait() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(kPending) : "memory");
}

// Orders this thread's ordinary writes to shared memory before what TMA or the tensor cores read there.
__device__ __forceinline__ void fence_proxy_async_shared() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// Orders what this thread and TMA do in any memory.
__device__ __forceinline__ void fence_proxy_async() { asm volatile("fence.proxy.async;" ::: "memory"); }

}  // namespace tilewave
