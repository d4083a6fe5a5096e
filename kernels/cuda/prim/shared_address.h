// Shared memory as PTX instructions address it: in a window of its own, by 32 bits.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tilewave {

__device__ __forceinline__ std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

// A block's dynamic shared memory as what the kernel keeps there, for all threads of a warp together, by an address that stays in a
// register. Left to itself, ptxas makes the address anew at each use, from the block's rank in its cluster, and waits some 40 cycles
// for that: twice a stage of a consumer's loop.
template <class Storage>
__device__ __forceinline__ Storage& storage_in(std::byte* memory) {
  return *static_cast<Storage*>(__cvta_shared_to_generic(__shfl_sync(0xffffffffu, shared_address(memory), 0)));
}

}  // namespace tilewave
