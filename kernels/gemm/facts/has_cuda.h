// Whether the CUDA back end is part of this build: a kernel names its launch by cuda_launch<...>(), which is null where it is not. Private
// to kernels' facts: all other sources are the same in every build.
#pragma once

#include "kernels/gemm/kernel.h"

namespace tilewave {

#ifndef TILEWAVE_HAS_CUDA
#error "This source is not among gemm_facts in CMakeLists.txt: its kernel would have no launch."
#endif
inline constexpr bool kHasCuda = TILEWAVE_HAS_CUDA == 1;

// A declaration is enough where there is no CUDA: nothing refers to it.
template <CudaGemmLaunch kLaunch>
constexpr CudaGemmLaunch cuda_launch() {
  if constexpr (kHasCuda) return kLaunch;
  return nullptr;
}

}  // namespace tilewave
