#include "framework/measure/device_choice.h"

#include <charconv>
#include <string_view>

#include "kernels/core/error.h"

namespace tilewave {

DeviceInfo device_named(const std::string& device, int threads) {
  constexpr std::string_view kNumbered = "cuda:";
  int index = -1;  // the first that can be used
  bool known = device == "auto" || device == "cpu" || device == "cuda";
  if (device.starts_with(kNumbered)) {
    const char* const end = device.data() + device.size();
    const auto [stop, error] = std::from_chars(device.data() + kNumbered.size(), end, index);
    known = error == std::errc() && stop == end && index >= 0;
  }
  TW_CHECK_INPUT(known, "--device ", device, ": there is no such device; use auto, cpu, cuda or cuda:N.");
  if (device == "cpu") return probe_cpu(threads);
  const CudaDevices gpus = probe_cuda();
  if (device == "auto") return gpus.usable.empty() ? probe_cpu(threads) : gpus.usable.front();
  TW_CHECK(!gpus.usable.empty(), "--device ", device, ": ", gpus.refused);
  for (const DeviceInfo& gpu : gpus.usable) {
    if (index < 0 || gpu.index == index) return gpu;
  }
  throw Error(concat("--device ", device, ": there is no such GPU; tilewave devices lists those there are.",
                     gpus.refused.empty() ? "" : " ", gpus.refused));
}

}  // namespace tilewave
