// The table of profiles. Clocks are the highest, which a driver reports; printed peaks may be at a lower one.
#include "kernels/core/device_profiles.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "kernels/core/error.h"

namespace tilewave {
namespace {

struct Printed {
  std::string_view key, name;
  int capability, sm_count;
  double mhz, gbytes_per_s;
  std::int64_t l2_mib, memory_mib, shared_kib;
  double f16_tflops, f32_tflops, cache_gbytes_per_s, link_gbytes_per_s;
  std::string_view source;
};

// Memory: the total that nvidia-smi shows. Shared memory of a block: CUDA C++ Programming Guide, technical
// specifications per compute capability. Links: what a board comes with, NVLink or else PCIe of 16 lanes, half of the printed sum of both
// directions; bridges that are bought apart do not count. A V100's is
// of its datasheet.
constexpr Printed kPrinted[] = {
    {"v100", "Tesla V100-SXM2-32GB", 70, 80, 1530, 900, 6, 32768, 96, 125, 15.7, 3100, 150, "Deep Learning Performance guide, section 3"},
    {"t4", "Tesla T4", 75, 40, 1590, 320, 4, 15360, 64, 65, 8.1, 0, 16, "Turing architecture whitepaper, T4"},
    {"a100", "NVIDIA A100-SXM4-80GB", 80, 108, 1410, 2039, 40, 81920, 163, 312, 19.5, 0, 300, "A100 80 GB datasheet, A100 whitepaper"},
    {"rtx3090", "NVIDIA GeForce RTX 3090", 86, 82, 1695, 936, 6, 24576, 99, 71, 35.6, 0, 32,
     "GA102 whitepaper, RTX 3090 (fp16 products summed in fp32)"},
    {"a10", "NVIDIA A10", 86, 72, 1695, 600, 6, 23028, 99, 125, 31.2, 0, 32, "A10 datasheet, GA102 whitepaper"},
    {"l4", "NVIDIA L4", 89, 58, 2040, 300, 48, 23034, 99, 121, 30.3, 0, 32, "L4 datasheet (half of the sparse rate)"},
    {"l40s", "NVIDIA L40S", 89, 142, 2520, 864, 96, 46068, 99, 362.05, 91.6, 0, 32, "L40S datasheet, Ada whitepaper"},
    {"rtx4090", "NVIDIA GeForce RTX 4090", 89, 128, 2520, 1008, 72, 24564, 99, 165.2, 82.6, 0, 32,
     "Ada whitepaper, RTX 4090 (fp16 products summed in fp32)"},
    {"h100-pcie", "NVIDIA H100 PCIe", 90, 114, 1755, 2039, 50, 81559, 227, 756, 51, 0, 64,
     "H100 datasheet (half of the sparse rate), H100 whitepaper"},
    {"h100-sxm", "NVIDIA H100 80GB HBM3", 90, 132, 1980, 3350, 50, 81559, 227, 989.4, 66.9, 0, 450,
     "H100 datasheet (half of the sparse rate), H100 whitepaper"},
    {"gh200", "NVIDIA GH200 480GB", 90, 132, 1980, 4000, 60, 97871, 227, 989.4, 66.9, 0, 450,
     "GH200 datasheet, 96 GB of HBM3 (half of the sparse rate), H100 whitepaper"},
    {"h200", "NVIDIA H200", 90, 132, 1980, 4800, 60, 143771, 227, 989.4, 66.9, 0, 450,
     "H200 datasheet (half of the sparse rate), H100 whitepaper"},
    {"b200", "NVIDIA B200", 100, 148, 1965, 8000, 126, 183359, 227, 2250, 75, 0, 900,
     "HGX B200 datasheet (half of the sparse rate), Blackwell tuning guide"},
    {"rtx5090", "NVIDIA GeForce RTX 5090", 120, 170, 2407, 1792, 96, 32607, 99, 209.5, 104.8, 0, 64,
     "RTX Blackwell whitepaper, RTX 5090 (fp16 products summed in fp32)"},
};

// Names that people say, and the profile that each stands for.
struct Alias {
  std::string_view name, key, others;
};
constexpr Alias kAliases[] = {{"h100", "h100-sxm", "the PCIe card is h100-pcie"}};

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

DeviceProfile profile_of(const Printed& p) {
  return {.key = p.key,
          .device = {.backend = Backend::cuda,
                     .name = std::string(p.name),
                     .index = kNoDevice,
                     .capability = p.capability,
                     .sm_count = p.sm_count,
                     .instruction_set = {},
                     .l2_bytes = p.l2_mib << 20,
                     .memory_bytes = p.memory_mib << 20,
                     .shared_bytes = p.shared_kib << 10,
                     .clock_hz = 1e6 * p.mhz,
                     .bandwidth_bytes_per_s = 1e9 * p.gbytes_per_s,
                     .link_bytes_per_s = 1e9 * p.link_gbytes_per_s,
                     .driver = {},
                     .cost_model = nullptr},
          .f16_flops_per_s = 1e12 * p.f16_tflops,
          .f32_flops_per_s = 1e12 * p.f32_tflops,
          .cache_bandwidth_bytes_per_s = 1e9 * p.cache_gbytes_per_s,
          .source = p.source};
}

}  // namespace

std::span<const DeviceProfile> device_profiles() {
  static const std::vector<DeviceProfile> profiles = [] {
    std::vector<DeviceProfile> all;
    for (const Printed& printed : kPrinted) all.push_back(profile_of(printed));
    return all;
  }();
  return profiles;
}

const DeviceProfile& device_profile(std::string_view key) {
  std::string lower = lower_case(key), known;
  for (const Alias& alias : kAliases) {
    if (lower == alias.name) lower = alias.key;
  }
  for (const DeviceProfile& profile : device_profiles()) {
    if (profile.key == lower) return profile;
    known += concat(known.empty() ? "" : ", ", profile.key);
  }
  throw InputError(concat("there is no profile of a device called \"", key, "\"; there are ", known, "."));
}

std::string profile_note(std::string_view name) {
  const std::string lower = lower_case(name);
  for (const Alias& alias : kAliases) {
    if (lower == alias.name)
      return concat(alias.name, " means ", alias.key, ", ", device_profile(alias.key).device.name, "; ", alias.others);
  }
  return {};
}

const DeviceProfile* find_profile(const DeviceInfo& device) {
  for (const DeviceProfile& profile : device_profiles()) {
    if (device.backend == Backend::cuda && profile.device.name == device.name) return &profile;
  }
  return nullptr;
}

std::string source_of_figures(const DeviceInfo& device) {
  const DeviceProfile* const profile = find_profile(device);
  if (profile == nullptr) return {};
  std::string text(profile->source);
  if (device.bandwidth_bytes_per_s != profile->device.bandwidth_bytes_per_s) text += "; the bandwidth is the driver's";
  if (device.sm_count != profile->device.sm_count) {
    text += concat("; that is of ", profile->device.sm_count, " SMs: the peak is scaled to ", device.sm_count, ", all else is not");
  }
  return text;
}

MathRates math_rates(const DeviceInfo& device) {
  MathRates rates = math_rates(device.capability);
  const DeviceProfile* const profile = find_profile(device);
  if (profile == nullptr || rates.tensor_f16 == 0) return rates;
  const double by_rate = 2.0 * rates.tensor_f16 * static_cast<double>(profile->device.sm_count) * profile->device.clock_hz;
  const int times = std::max(1, static_cast<int>(std::lround(profile->f16_flops_per_s / by_rate)));
  for (int* const rate : {&rates.tensor_tf32, &rates.tensor_f16, &rates.tensor_bf16}) *rate *= times;
  return rates;
}

double peak_flops_per_s(const DeviceInfo& device, DType operands, MathMode math) {
  const MathRates rates = math_rates(device);
  const bool tf32 = math == MathMode::tf32;
  const int rate = operands == DType::f64    ? rates.fp64
                   : operands == DType::f32  ? (tf32 ? rates.tensor_tf32 : rates.fp32)
                   : operands == DType::bf16 ? rates.tensor_bf16
                   : operands == DType::f16  ? rates.tensor_f16
                                             : 0;
  const DeviceProfile* const profile = find_profile(device);
  if (profile == nullptr) {
    return 2.0 * rate * static_cast<double>(device.sm_count) * device.clock_hz;
  }
  const bool cuda_cores = operands == DType::f64 || (operands == DType::f32 && !tf32);
  const double printed = cuda_cores ? profile->f32_flops_per_s : profile->f16_flops_per_s;
  const double share = static_cast<double>(device.sm_count) / static_cast<double>(profile->device.sm_count);
  return share * printed * rate / (cuda_cores ? rates.fp32 : rates.tensor_f16);
}

}  // namespace tilewave
