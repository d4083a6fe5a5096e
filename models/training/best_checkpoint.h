// The checkpoint with the least validation loss, which run.keep_best asks for: in best/ of the run folder, beside those of run.keep.
#pragma once

#include <filesystem>
#include <optional>

#include "models/training/trainer.h"
#include "models/training/training_state.h"

namespace tilewave {

class BestCheckpoint {
 public:
  explicit BestCheckpoint(const std::filesystem::path& run_folder);

  // Of a run that goes on from this step: one of a later step is of steps that are done again.
  void go_on_from(std::int64_t step);
  // Whether this would be the least loss so far.
  bool improves(double validation_loss) const { return !found_ || validation_loss < found_->loss; }
  // Saves the model, whose loss this is.
  void keep(TrainStep& step, TrainingState state, double validation_loss);

  const std::optional<BestValidation>& found() const { return found_; }

 private:
  std::filesystem::path folder_;
  std::optional<BestValidation> found_;
};

}  // namespace tilewave
