// Shared memory as PTX instructions address it: in a window of its own, by 32 bits.
#pragma once

#include <cstdint>

namespace tilewave {

__device__ __forceinline__ std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

}  // namespace tilewave
