// A traced step for a person: parameters, memory, and its GEMMs with alignment, tile and wave in columns of their own.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "kernels/core/device.h"
#include "models/step/train_step.h"

namespace tilewave {

void print_adjustments(std::ostream& stream, const ResolvedRecipe& resolved);
// Of several settings beside each other: each adjustment once, and the settings that make it. Nothing where none makes any.
struct AdjustedSetting {
  std::string name;
  std::vector<Adjustment> adjustments;
};
void print_adjustments(std::ostream& stream, const std::vector<AdjustedSetting>& settings);
void print_step(std::ostream& stream, const ResolvedRecipe& resolved, const StepTrace& trace, const DeviceInfo& device);

// Launches that do the same in layers of the same name stand in one row: time a step, share of it, rate, and for GEMMs how the
// prediction fared.
void print_profile(std::ostream& stream, const std::vector<ProfiledLaunch>& launches, std::int64_t steps);

std::string bytes_text(std::int64_t bytes);         // "12.3 MiB"
std::string device_text(const DeviceInfo& device);  // "NVIDIA H200 (132 SMs)"

}  // namespace tilewave
