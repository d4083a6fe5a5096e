// Whether the CUDA back end is part of this build: a kernel names its launch by cuda_launch<...>(), which is null where it is not. Private
// to kernels' facts: all other sources are the same in every build.
#pragma once

#include "kernels/gemm/kernel.h"

namespace tilewave {

#ifdef TILEWAVE_HAS_CUDA
inline constexpr bool kHasCuda = true;
#else
inline constexpr bool kHasCuda = false;
#endif

// A declaration is enough where there is no CUDA: nothing refers to it.
template <CudaGemmLaunch kLaunch>
constexpr CudaGemmLaunch cuda_launch() {
  if constexpr (kHasCuda) return kLaunch;
  return nullptr;
}

}  // namespace tilewave
