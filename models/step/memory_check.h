// Whether a run fits into its device's memory, asked before anything is allocated.
#pragma once

#include <cstdint>
#include <string>

#include "models/step/train_step.h"

namespace tilewave {

// Set aside for what is not in the trace: a GPU's driver's context, the loaded kernels, a captured graph, translations; on a CPU, whose
// translations fit what steps take, batches, files on their way and launches' own scratch memory.
constexpr std::int64_t reserved_bytes(Backend backend) { return std::int64_t{backend == Backend::cuda ? 1024 : 16} << 20; }

// Where the traced step needs more than `free_bytes` less the reserve: a sentence with the recipe's key and a value that fits; else
// empty.
std::string memory_shortage(const ResolvedRecipe& resolved, const StepTrace& trace, const DeviceInfo& device, std::int64_t free_bytes);

// Throws that sentence as an Error.
void check_memory(const ResolvedRecipe& resolved, const StepTrace& trace, const DeviceInfo& device, std::int64_t free_bytes);

}  // namespace tilewave
