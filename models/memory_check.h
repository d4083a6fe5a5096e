// Whether a run fits into its device's memory, asked before anything is allocated.
#pragma once

#include <cstdint>
#include <string>

#include "models/train_step.h"

namespace tilewave {

// Set aside for what is not in the trace: the driver's context, the loaded kernels, a captured graph, validation.
inline constexpr std::int64_t kReservedBytes = std::int64_t{1} << 30;

// Where the traced step needs more than `free_bytes` less the reserve: a sentence with the recipe's key and a value that fits; else
// empty.
std::string memory_shortage(const ResolvedRecipe& resolved, const StepTrace& trace, const DeviceInfo& device, std::int64_t free_bytes);

// Throws that sentence as an Error.
void check_memory(const ResolvedRecipe& resolved, const StepTrace& trace, const DeviceInfo& device, std::int64_t free_bytes);

}  // namespace tilewave
