// A traced step for a person: parameters, memory, and its GEMMs with alignment, tile and wave in columns of their own.
#pragma once

#include <iosfwd>

#include "kernels/device.h"
#include "models/train_step.h"

namespace tilewave {

void print_adjustments(std::ostream& stream, const ResolvedRecipe& resolved);
void print_step(std::ostream& stream, const StepTrace& trace, const DeviceInfo& device);

std::string bytes_text(std::int64_t bytes);         // "12.3 MiB"
std::string device_text(const DeviceInfo& device);  // "NVIDIA H200 (132 SMs)"

}  // namespace tilewave
