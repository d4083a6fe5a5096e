// The table of peaks, and the way to the CUDA back end's probe.
#include "kernels/core/device.h"

#include "kernels/core/queue.h"
#include "kernels/core/unit_rates.h"

namespace tilewave {

namespace {

MathRates math_rates_of(const UnitRates& units) {
  return {.fp64 = units.fp64,
          .fp32 = units.fp32,
          .tensor_tf32 = units.tensor_tf32,
          .tensor_f16 = units.tensor_fp16,
          .tensor_bf16 = units.tensor_bf16};
}

}  // namespace

// Sources: unit_rates.h; for GA102, Ada and GeForce Blackwell their whitepapers, tables of peak rates, over SMs and boost clock.
MathRates math_rates(int capability) {
  switch (capability) {
    case 70:
      return math_rates_of(kVoltaRates);
    case 75:
      return math_rates_of(kTuringRates);
    case 80:
      return math_rates_of(kAmpereRates);
    case 86:
    case 89:
    case 120:
      return {.fp64 = 2, .fp32 = 128, .tensor_tf32 = 128, .tensor_f16 = 256, .tensor_bf16 = 256};
    case 90:
      return math_rates_of(kHopperRates);
    case 100:
      return math_rates_of(kBlackwellRates);
    default:
      return {};
  }
}

}  // namespace tilewave
