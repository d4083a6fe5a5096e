// The catalog's kernels in the order in which each adds an idea to the one before: the best tile of every one on the same GEMM.
#pragma once

#include "app/bench/gemm_bench.h"

namespace tilewave {

// A line for each kernel of the device's back end, on each item of the suite: time, rate, share of the device's peak and of the peer's
// rate, all measured in the same rounds; or why the kernel refuses. What cannot be measured is an InputError before anything is printed.
int gemm_ladder(const Queue& queue, const DeviceInfo& device, const GemmBench& options);

}  // namespace tilewave
