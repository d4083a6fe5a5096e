// What a trained run is worth on data: the loss, and of pairs the translations to be scored.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kernels/core/device.h"
#include "kernels/core/queue.h"
#include "models/exchange/initial_weights.h"
#include "models/training/trainer.h"

namespace tilewave {

struct EvaluationRequest {
  std::filesystem::path run;
  std::filesystem::path data, target;  // empty: what the run validated on; of pairs both
  InitialWeights weights;              // in the place of the newest checkpoint's
  std::int64_t beams = 1;
  Queue queue;
  DeviceInfo device;
  std::function<bool()> interrupted = [] { return false; };
};

struct Evaluation {
  std::int64_t step = 0;  // that the weights were saved after
  ValidationLoss loss;
  PairCounts pairs;                                   // of the loss
  std::vector<std::string> translations, references;  // of pairs that fit the model, as many
  std::vector<std::string> notes;                     // sentences a person should read
  bool interrupted = false;
};

// InputError where the folder is no run, has no valid checkpoint, or the data is of another kind than the run's.
Evaluation evaluate_run(const EvaluationRequest& request);

}  // namespace tilewave
