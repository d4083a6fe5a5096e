// The device that a word of a person's names.
#pragma once

#include <string>

#include "kernels/core/device.h"

namespace tilewave {

// "auto" is the first GPU that can be used, else the CPU; "cpu", of `threads` threads (0: as many as the process may use); "cuda" and
// "cuda:N". InputError for another word, Error with the reason where a GPU was asked for and none can be used.
DeviceInfo device_named(const std::string& device, int threads);

}  // namespace tilewave
