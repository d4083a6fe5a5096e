// What a device is, as far as planning needs to know: probed, never guessed. A figure that is not known is 0 and prints "unknown".
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tilewave {

struct CostModel;  // kernels/gemm/cost/cost_model.h

enum class Backend : std::uint8_t { cpu, cuda };

struct DeviceInfo {
  Backend backend = Backend::cpu;
  std::string name;               // "Intel(R) Xeon(R) ...", "NVIDIA H200"
  int index = 0;                  // CUDA: the GPU's number
  int capability = 0;             // CUDA: 10 x major + minor
  std::int64_t sm_count = 0;      // streaming multiprocessors; on a CPU the threads in use
  std::string instruction_set;    // CPU: what Highway dispatches to ("AVX3_DL", "AVX2", "NEON", ...)
  std::int64_t vector_bytes = 0;  // CPU: of one SIMD register
  std::int64_t l1_bytes = 0, l2_bytes = 0, l3_bytes = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t shared_bytes = 0;  // CUDA: the most shared memory that one block can have
  double clock_hz = 0.0;          // the highest
  double bandwidth_bytes_per_s = 0.0;
  double link_bytes_per_s = 0.0;                // CUDA: to other GPUs of the machine, per direction, as its maker prints it
  std::string driver;                           // CUDA: "580.95.05", or what CUDA it knows where the system does not tell
  std::shared_ptr<const CostModel> cost_model;  // CUDA: as calibrated here; null: the one that goes with its name
};

// Multiply-adds a clock and SM of a GPU with fp32 accumulation (fp64: fp64), by its compute capability; 0 where it has none.
// tilewave multiplies in fp64 on CUDA cores alone, for the last bit.
struct MathRates {
  int fp64 = 0, fp32 = 0;                                // CUDA cores
  int tensor_tf32 = 0, tensor_f16 = 0, tensor_bf16 = 0;  // Tensor Cores, dense
};
// All 0 for a capability that is not in the table.
MathRates math_rates(int capability);

// The GPUs that tilewave can use, and a sentence about why each of the others, or all, cannot be.
struct CudaDevices {
  std::vector<DeviceInfo> usable;
  std::string refused;
};
CudaDevices probe_cuda();
bool has_cuda();  // whether this build has CUDA kernels

inline constexpr int kMinCudaCapability = 80;

// This machine's CPU as `threads` threads see it (0: as many as the process may use).
DeviceInfo probe_cpu(int threads = 0);

}  // namespace tilewave
