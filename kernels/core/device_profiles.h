// GPUs that a plan can be made for without having one: what their makers print of them. A profile's device has no number
// (index kNoDevice), so nothing is launched on it; each says where its figures come from.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "kernels/core/device.h"
#include "kernels/core/dtype.h"
#include "kernels/gemm/problem.h"

namespace tilewave {

inline constexpr int kNoDevice = -1;

struct DeviceProfile {
  std::string_view key;                      // as --for names it
  DeviceInfo device;                         // its name is the driver's
  double f16_flops_per_s = 0.0;              // Tensor Cores, dense, as printed
  double f32_flops_per_s = 0.0;              // CUDA cores, as printed
  double cache_bandwidth_bytes_per_s = 0.0;  // of the second-level cache; 0 where it is not printed
  std::string_view source;
};

std::span<const DeviceProfile> device_profiles();

// By its key, whatever the case, or by a name that stands for one ("h100" for h100-sxm); InputError with the known ones.
const DeviceProfile& device_profile(std::string_view key);
// What a name stands for that is no profile's own key, as a sentence; empty for a key.
std::string profile_note(std::string_view name);
// The one of the same name as a probed GPU, or null.
const DeviceProfile* find_profile(const DeviceInfo& device);

// Where the device's printed figures come from, and which of them do not; empty where there is no profile of its name.
std::string source_of_figures(const DeviceInfo& device);

// math_rates of its capability, or where its printed peak is a multiple of that: boards for servers add up fp16 products in fp32 at
// twice the rate of those for games.
MathRates math_rates(const DeviceInfo& device);

// A GPU's dense peak in products of such operands, summed in fp32 (f64: f64, on CUDA cores): as printed where a profile of its name has it,
// else by rate and highest clock; 0 where it has no units for them or is not known, as a CPU.
double peak_flops_per_s(const DeviceInfo& device, DType operands, MathMode math);

}  // namespace tilewave
