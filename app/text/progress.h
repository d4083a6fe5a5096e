// How a run's progress looks: on a terminal one line that is redrawn, as wide as the terminal allows; elsewhere plain lines, some
// twenty over the run. Both go to stderr.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "models/training/trainer.h"

namespace tilewave {

class ProgressDisplay {
 public:
  explicit ProgressDisplay(std::int64_t steps);
  ~ProgressDisplay();
  ProgressDisplay(const ProgressDisplay&) = delete;
  ProgressDisplay& operator=(const ProgressDisplay&) = delete;

  void begin(std::int64_t first_step) {
    first_step_ = first_step;
    begun_ = std::chrono::steady_clock::now();
  }
  void count_pictures() { unit_ = "pictures"; }  // where there are no tokens
  void show(const TrainingProgress& progress);
  // A line of its own, above the progress.
  void say(const std::string& line);

 private:
  void clear();

  std::int64_t steps_;
  std::string_view unit_ = "tokens";
  std::int64_t first_step_ = 1;
  bool terminal_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point redrawn_{};
};

}  // namespace tilewave
