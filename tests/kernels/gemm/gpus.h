// GPUs that plans are made for where they are not.
#pragma once

#include "kernels/device.h"

namespace tilewave {

inline DeviceInfo h200() {
  return {.backend = Backend::cuda,
          .name = "NVIDIA H200",
          .capability = 90,
          .sm_count = 132,
          .instruction_set = {},
          .l2_bytes = 60 << 20,
          .memory_bytes = std::int64_t{140} << 30,
          .shared_bytes = 232448,
          .clock_hz = 1.98e9,
          .bandwidth_bytes_per_s = 4.8e12,
          .driver = "580.1"};
}

inline DeviceInfo a100() {
  return {.backend = Backend::cuda,
          .name = "NVIDIA A100-SXM4-80GB",
          .capability = 80,
          .sm_count = 108,
          .instruction_set = {},
          .l2_bytes = 40 << 20,
          .memory_bytes = std::int64_t{80} << 30,
          .shared_bytes = 166912,
          .clock_hz = 1.41e9,
          .bandwidth_bytes_per_s = 2.039e12,
          .driver = "580.1"};
}

}  // namespace tilewave
