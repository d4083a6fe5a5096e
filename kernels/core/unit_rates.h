// What a GPU's units multiply in a clock, and on which multiples of bytes they want rows to start: data alone, as the guide and NVIDIA's
// whitepapers print it. tilewave has kernels for some of these types; MathRates (device.h) holds what plans compute with.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/core/device.h"
#include "kernels/core/dtype.h"

namespace tilewave {

// Multiply-adds a clock and SM; 0: no such units, or none that the source prints.
struct UnitRates {
  int fp64 = 0, fp32 = 0, fp16 = 0, bf16 = 0, int8 = 0;  // CUDA cores
  // Tensor Cores, dense.
  int tensor_fp64 = 0, tensor_tf32 = 0, tensor_fp16 = 0, tensor_bf16 = 0, tensor_fp8 = 0, tensor_int8 = 0, tensor_int4 = 0, tensor_int1 = 0,
      tensor_fp4 = 0;
  std::string_view source = {};
};

// Deep Learning Performance, figure 2.
inline constexpr UnitRates kVoltaRates = {
    .fp64 = 32, .fp32 = 64, .fp16 = 128, .int8 = 256, .tensor_fp16 = 512, .source = "Deep Learning Performance, figure 2"};
inline constexpr UnitRates kTuringRates = {.fp64 = 2,
                                           .fp32 = 64,
                                           .fp16 = 128,
                                           .int8 = 256,
                                           .tensor_fp16 = 512,
                                           .tensor_int8 = 1024,
                                           .tensor_int4 = 2048,
                                           .tensor_int1 = 8192,
                                           .source = "Deep Learning Performance, figure 2"};
inline constexpr UnitRates kAmpereRates = {.fp64 = 32,
                                           .fp32 = 64,
                                           .fp16 = 256,
                                           .bf16 = 128,
                                           .tensor_fp64 = 64,
                                           .tensor_tf32 = 512,
                                           .tensor_fp16 = 1024,
                                           .tensor_bf16 = 1024,
                                           .tensor_int8 = 2048,
                                           .tensor_int4 = 4096,
                                           .tensor_int1 = 16384,
                                           .source = "A100 whitepaper, peak rates over SMs and boost clock"};
inline constexpr UnitRates kHopperRates = {.fp64 = 64,
                                           .fp32 = 128,
                                           .fp16 = 256,
                                           .bf16 = 256,
                                           .tensor_fp64 = 128,
                                           .tensor_tf32 = 1024,
                                           .tensor_fp16 = 2048,
                                           .tensor_bf16 = 2048,
                                           .tensor_fp8 = 4096,
                                           .tensor_int8 = 4096,
                                           .source = "H100 whitepaper, peak rates over SMs and boost clock"};
inline constexpr UnitRates kBlackwellRates = {.fp64 = 64,
                                              .fp32 = 128,
                                              .tensor_fp64 = 64,
                                              .tensor_tf32 = 2048,
                                              .tensor_fp16 = 4096,
                                              .tensor_bf16 = 4096,
                                              .tensor_fp8 = 8192,
                                              .tensor_int8 = 8192,
                                              .tensor_fp4 = 16384,
                                              .source = "HGX B200 datasheet, peak rates over SMs and boost clock"};

// Of compute capability 7.0, 7.5, 8.0, 9.0 and 10.0 the five above. Of others what plans compute with, where they are known.
UnitRates unit_rates(const DeviceInfo& device);

// The bytes that rows should start on: what Tensor Cores wanted before cuBLAS 11, and what is fastest (Matrix Multiplication Background,
// section 2.2, which names the A100; later GPUs as it).
inline constexpr std::int64_t kLeastAlignedBytes = 16;
constexpr std::int64_t best_aligned_bytes(int capability) { return capability >= 80 ? 128 : kLeastAlignedBytes; }

// The same in elements, for a type that the device's Tensor Cores multiply.
struct AlignedMultiple {
  std::string_view type;  // "FP16"
  std::int64_t least = 0, best = 0;
};
std::vector<AlignedMultiple> aligned_multiples(const DeviceInfo& device);

}  // namespace tilewave
