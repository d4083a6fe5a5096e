// A whole run: corpus, steps, validation, checkpoints, summary, in a run folder. Says what happens to an observer and prints
// nothing itself.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "framework/data/corpus.h"
#include "framework/io/json_lines.h"
#include "framework/io/run_folder.h"
#include "kernels/core/device.h"
#include "kernels/core/queue.h"
#include "models/exchange/initial_weights.h"
#include "models/step/train_step.h"

namespace tilewave {

struct TrainingStart {
  std::filesystem::path folder;
  const ResolvedRecipe* resolved = nullptr;
  std::int64_t parameters = 0;
  std::int64_t bytes = 0;         // of memory, at most
  std::int64_t matrix_flops = 0;  // of a step: GEMMs and attention
  std::int64_t first_step = 1;    // above 1 where a run is resumed
  CorpusFacts data;
};

struct TrainingProgress {
  StepReport step;
  double target_tokens_per_s = 0.0;  // of this step
  double elapsed_s = 0.0;            // of training, over every part of the run
};

struct SampleTranslation {
  std::string source, expected, translation;
};

// Pairs of one part of the data, and how many of them a number says nothing of; data that is no pairs has none.
struct PairCounts {
  std::int64_t all = 0;
  std::int64_t left_out = 0;  // too long, or blank on a side

  std::int64_t counted() const { return all - left_out; }
};

struct BestValidation {
  std::int64_t step = 0;
  double loss = 0.0;
};

struct TrainingResult {
  std::filesystem::path folder;
  std::int64_t steps = 0;
  double loss = 0.0;                   // of the last step, with label smoothing
  ValidationLoss validation;           // without
  std::optional<BestValidation> best;  // whose checkpoint is kept, where run.keep_best asks for it
  PairCounts validation_pairs;         // those left out are not in the loss
  std::optional<double> exact_match;   // fraction of all test pairs, those left out included
  PairCounts test_pairs;               // those left out are not translated
  std::string not_translated;          // why no test pair is, where some should have been
  std::vector<SampleTranslation> samples;
  double target_tokens_per_s = 0.0;
  double seconds = 0.0;
  double matrix_flops_per_s = 0.0;  // of all ranks, over all steps, those before a resume included
  std::int64_t extra_passes = 0;    // of ranks, whose shares did not hold a batch's sequences at once
  int signal = 0;                   // that stopped the run before its end, after a checkpoint was saved; without a folder, before its start
};

// The fields that summary.json has, beside a run's steps and times (docs/use/formats.md).
void add_numbers(JsonObject& object, const TrainingResult& result);

// Steps to be profiled: `count` of them from `first` on; none by default.
struct ProfiledSteps {
  std::int64_t first = 0, count = 0;

  bool contain(std::int64_t step) const { return step >= first && step < first + count; }
};

struct TrainingObserver {
  // Before the first byte of the run is written or removed; until then there is nothing that a stop could lose. Not 0: a signal that stops
  // the run here.
  std::function<int()> beginning = [] { return 0; };
  std::function<void(const TrainingStart&)> started = [](const TrainingStart&) {};
  std::function<void(const TrainingProgress&)> stepped = [](const TrainingProgress&) {};
  std::function<void(std::int64_t step, const ValidationLoss& loss)> validated = [](std::int64_t, const ValidationLoss&) {};
  // The launches of so many profiled steps, once the last of them is done; profile.jsonl and trace.json in the run folder hold them too.
  std::function<void(const std::vector<ProfiledLaunch>&, std::int64_t steps)> profiled = [](const std::vector<ProfiledLaunch>&,
                                                                                            std::int64_t) {};
  // After the last step, whose checkpoint is saved: what follows changes nothing that a resumed run would not do again.
  std::function<void(const std::filesystem::path& folder)> saved = [](const std::filesystem::path&) {};
  std::function<void(const std::string&)> noted = [](const std::string&) {};  // a sentence a person should read
};

struct TrainingRequest {
  Recipe recipe;
  RunRequest run;
  Queue queue;
  DeviceInfo device;
  ProfiledSteps profile;
  InitialWeights weights;  // of a run's first step; a resumed run has its own
  Communicator ranks;      // this process among recipe.run.ranks; the first of them writes the run folder, which all can write to
  std::string program;     // that runs here, by version and commit: all ranks' must be one
  std::function<void(const std::string& sentence)> rank_lost;  // ends the process: another rank is gone, as the sentence says
  // Asked after every step, between batches of a validation and between groups of test pairs; not 0: save and stop.
  std::function<int()> stop_signal = [] { return 0; };
};

TrainingResult train(const TrainingRequest& request, const TrainingObserver& observer);

}  // namespace tilewave
