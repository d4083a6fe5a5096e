// What run.log = "tensorboard" asks for: the numbers of metrics.jsonl once more, as an event file in the run folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

#include "framework/io/appended_file.h"
#include "models/training/trainer.h"

namespace tilewave {

class EventLog {
 public:
  // Begins the file anew, with the steps that metrics.jsonl has.
  explicit EventLog(const std::filesystem::path& run_folder);

  void add(const TrainingProgress& progress, const std::optional<ValidationLoss>& validation);
  void add_validation(std::int64_t step, const ValidationLoss& validation);

 private:
  AppendedFile file_;
};

}  // namespace tilewave
