#include "kernels/core/unit_rates.h"

#include "kernels/core/device_profiles.h"

namespace tilewave {

UnitRates unit_rates(const DeviceInfo& device) {
  switch (device.capability) {
    case 70:
      return kVoltaRates;
    case 75:
      return kTuringRates;
    case 80:
      return kAmpereRates;
    case 90:
      return kHopperRates;
    case 100:
      return kBlackwellRates;
    default:
      break;
  }
  const MathRates known = math_rates(device);
  return {.fp64 = known.fp64,
          .fp32 = known.fp32,
          .tensor_tf32 = known.tensor_tf32,
          .tensor_fp16 = known.tensor_f16,
          .tensor_bf16 = known.tensor_bf16,
          .source = known.fp32 > 0 ? "the profile's peaks over SMs and clock; other types are not in the table" : ""};
}

std::vector<AlignedMultiple> aligned_multiples(const DeviceInfo& device) {
  struct Type {
    std::string_view name;
    std::int64_t bytes;
    int UnitRates::*rate;
  };
  constexpr Type kTypes[] = {{"INT8", 1, &UnitRates::tensor_int8}, {"FP8", 1, &UnitRates::tensor_fp8},
                             {"FP16", 2, &UnitRates::tensor_fp16}, {"BF16", 2, &UnitRates::tensor_bf16},
                             {"TF32", 4, &UnitRates::tensor_tf32}, {"FP64", 8, &UnitRates::tensor_fp64}};
  const UnitRates rates = unit_rates(device);
  std::vector<AlignedMultiple> multiples;
  for (const Type& type : kTypes) {
    if (rates.*type.rate == 0) continue;
    multiples.push_back(
        {.type = type.name, .least = kLeastAlignedBytes / type.bytes, .best = best_aligned_bytes(device.capability) / type.bytes});
  }
  return multiples;
}

}  // namespace tilewave
