// Devices by their profile and plain products, as the tests of plans name them.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/core/device_profiles.h"
#include "kernels/gemm/problem.h"

namespace tilewave {

inline const DeviceInfo& device(std::string_view key) { return device_profile(key).device; }

inline GemmProblem gemm(std::int64_t m, std::int64_t n, std::int64_t k, Precision precision = Precision::fp16) {
  return plain_gemm({.out = m, .in = k, .tokens = n}, precision, PitchPolicy::packed);
}

}  // namespace tilewave
