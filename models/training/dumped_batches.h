// The first batches of a run, for another framework to train on the same tokens in the same order (docs/use/formats.md).
#pragma once

#include <cstdint>
#include <filesystem>

#include "models/training/trainer.h"

namespace tilewave {

struct BatchDump {
  std::int64_t batches = 0;  // the first so many; a step of batch.accumulate passes takes as many
  std::filesystem::path file;
};

// Writes what train() of the recipe on the device would train on; makes no run.
void dump_batches(const Recipe& recipe, const DeviceInfo& device, const BatchDump& dump, const TrainingObserver& observer);

}  // namespace tilewave
