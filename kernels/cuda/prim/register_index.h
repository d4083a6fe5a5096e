// An array in registers is indexed by constants alone.
#pragma once

namespace tilewave {

// fn(index) with a constant: a branch for each, which an empty instruction keeps from becoming a selection among all of them.
template <int kCount, class Fn>
__device__ __forceinline__ void with_register_index(int index, Fn&& fn) {
#pragma unroll
  for (int candidate = 0; candidate < kCount; ++candidate) {
    if (candidate != index) continue;
    asm volatile("");
    fn(candidate);
  }
}

}  // namespace tilewave
