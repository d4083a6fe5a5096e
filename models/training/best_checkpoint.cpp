#include "models/training/best_checkpoint.h"

#include "framework/io/run_folder.h"

namespace tilewave {

BestCheckpoint::BestCheckpoint(const std::filesystem::path& run_folder) : folder_(run_folder / kBestFolder) {}

void BestCheckpoint::go_on_from(std::int64_t step) {
  const CheckpointSearch search = find_latest_valid(folder_);
  if (!search.newest) return;
  const TrainingState state = read_training_state(search.newest->state());
  if (state.step <= step && state.validation_loss) {
    found_ = {.step = state.step, .loss = *state.validation_loss};
  } else {
    remove_all_checkpoints(folder_);
  }
}

void BestCheckpoint::keep(TrainStep& step, TrainingState state, double validation_loss) {
  state.validation_loss = validation_loss;
  make_folder(folder_);
  save_training(folder_, step, state, 1);
  found_ = {.step = state.step, .loss = validation_loss};
}

}  // namespace tilewave
