// A library's kernels as the guide describes them: planned with on devices that tilewave has no kernels for, never launched.
#pragma once

#include "kernels/gemm/guide_tiles.h"
#include "kernels/gemm/kernel.h"

namespace tilewave {

extern const GemmKernel kGuideTensorCoresKernel, kGuideCudaCoresKernel;

}  // namespace tilewave
