// What a checkpoint of a run holds beside weights and moments, and the way of all three to disk and back: after a restore the
// next step is the one that would have followed, bit for bit.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "framework/data/batches.h"
#include "framework/io/checkpoint.h"
#include "models/step/train_step.h"

namespace tilewave {

struct TrainingState {
  std::int64_t step = 0;     // updates done
  DataPosition position;     // of the training stream behind them
  std::uint64_t corpus = 0;  // its fingerprint
  std::string recipe_hash;   // of what a resumed run may not change
  std::int64_t vocabulary = 0, vocabulary_padded = 0;
  std::optional<double> loss_scale;       // of a run in fp16, and
  std::int64_t good_steps = 0;            // the finite steps since it last changed
  double loss = 0.0;                      // of the last step
  std::optional<double> validation_loss;  // behind it, of the best checkpoint
  double elapsed_s = 0.0;                 // of training so far, over every part of the run
  std::int64_t target_tokens = 0;
};

std::string to_json(const TrainingState& state, TrainStep& step);
// InputError, naming the file, where it is not what to_json wrote.
TrainingState read_training_state(const std::filesystem::path& path);

// Where ranks have shares of the state, the first one saves and the others tell theirs meanwhile.
Checkpoint save_training(const std::filesystem::path& run_folder, TrainStep& step, const TrainingState& state, std::int64_t keep);
void tell_shares(TrainStep& step);
TrainingState restore_training(const Checkpoint& checkpoint, TrainStep& step);

}  // namespace tilewave
