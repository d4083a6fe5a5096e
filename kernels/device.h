// What a device is, as far as planning needs to know: probed, never guessed. A figure that is not known is 0 and prints "unknown".
#pragma once

#include <cstdint>
#include <string>

namespace tilewave {

enum class Backend : std::uint8_t { cpu, cuda };

struct DeviceInfo {
  Backend backend = Backend::cpu;
  std::string name;               // "Intel(R) Xeon(R) ...", "NVIDIA H200"
  int capability = 0;             // CUDA: 10 x major + minor
  std::int64_t sm_count = 0;      // streaming multiprocessors; on a CPU the threads in use
  std::string instruction_set;    // CPU: what Highway dispatches to ("AVX3_DL", "AVX2", "NEON", ...)
  std::int64_t vector_bytes = 0;  // CPU: of one SIMD register
  std::int64_t l1_bytes = 0, l2_bytes = 0, l3_bytes = 0;
  std::int64_t memory_bytes = 0;
  double clock_hz = 0.0;
  double bandwidth_bytes_per_s = 0.0;
};

// This machine's CPU as `threads` threads see it (0: as many as the process may use).
DeviceInfo probe_cpu(int threads = 0);

}  // namespace tilewave
