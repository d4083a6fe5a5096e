// GPUs as a probe finds them, from what their makers print: with a number and a driver, and without a cost model of their own.
#pragma once

#include "kernels/core/device_profiles.h"

namespace tilewave {

inline DeviceInfo probed(std::string_view key) {
  DeviceInfo device = device_profile(key).device;
  device.index = 0;
  device.driver = "580.1";
  device.cost_model = nullptr;
  return device;
}
inline DeviceInfo h200() { return probed("h200"); }
inline DeviceInfo a100() { return probed("a100"); }

}  // namespace tilewave
