// Runs of models that see, in folders of memory.
#pragma once

#include <csignal>
#include <filesystem>
#include <gtest/gtest.h>
#include <string>

#include "models/training/trainer.h"
#include "tests/memory_folder.h"

namespace tilewave {

class PictureRuns : public testing::Test {
 protected:
  std::filesystem::path folder(const std::string& name) const { return temporary / name; }

  // Stopped after so many steps; 0: not stopped.
  TrainingResult trained(const Recipe& recipe, const std::string& name, std::int64_t stop_after = 0,
                         RunStart start = RunStart::fresh) const {
    std::int64_t done = 0;
    return train({.recipe = recipe,
                  .run = {.recipe = recipe.name, .folder = folder(name), .start = start},
                  .queue = make_cpu_queue(2),
                  .device = probe_cpu(2),
                  .stop_signal = [&] { return stop_after > 0 && done >= stop_after ? SIGTERM : 0; }},
                 {.stepped = [&](const TrainingProgress& progress) { done = progress.step.step; }});
  }

  MemoryFolder temporary;
};

}  // namespace tilewave
