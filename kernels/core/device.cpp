// The table of peaks, and the way to the CUDA back end's probe.
#include "kernels/core/device.h"

#include "kernels/core/device_profiles.h"
#include "kernels/core/queue.h"

namespace tilewave {

// Sources: the guide for Volta and Turing; NVIDIA's architecture whitepapers (A100, GA102, Ada, H100) and the HGX B200 datasheet,
// tables of peak rates, over SMs and boost clock.
MathRates math_rates(int capability) {
  switch (capability) {
    case 70:
      return {.fp64 = kVoltaRates.fp64, .fp32 = kVoltaRates.fp32, .tensor_f16 = kVoltaRates.tensor_fp16};
    case 75:
      return {.fp64 = kTuringRates.fp64, .fp32 = kTuringRates.fp32, .tensor_f16 = kTuringRates.tensor_fp16};
    case 80:
      return {.fp64 = 32, .fp32 = 64, .tensor_tf32 = 512, .tensor_f16 = 1024, .tensor_bf16 = 1024};
    case 86:
      return {.fp64 = 2, .fp32 = 128, .tensor_tf32 = 128, .tensor_f16 = 256, .tensor_bf16 = 256};
    case 89:
      return {.fp64 = 2, .fp32 = 128, .tensor_tf32 = 128, .tensor_f16 = 256, .tensor_bf16 = 256};
    case 90:
      return {.fp64 = 64, .fp32 = 128, .tensor_tf32 = 1024, .tensor_f16 = 2048, .tensor_bf16 = 2048};
    case 100:
      return {.fp64 = 64, .fp32 = 128, .tensor_tf32 = 2048, .tensor_f16 = 4096, .tensor_bf16 = 4096};
    default:
      return {};
  }
}

}  // namespace tilewave
