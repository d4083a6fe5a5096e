// A step that can be run: all that may be refused about a run is known before its folder is made.
#pragma once

#include <optional>

#include "models/step/step_batches.h"
#include "models/step/step_plans.h"
#include "models/training/trainer.h"

namespace tilewave {

// The run's corpus with its own tokenizer, where it has one; what takes its time, and what the corpus has to say, goes to the observer.
Corpus read_corpus(const Recipe& recipe, std::optional<Tokenizer> tokenizer, const TrainingObserver& observer);

// Throws where the step, or what follows the last one, does not fit into memory. A run that is resumed, from its folder, keeps the plans it
// began with, as long as [gemm] is what it was.
struct PlannedStep {
  PlannedStep(const TrainingRequest& request, const TrainingObserver& observer, const Recipe& recipe, const Corpus& corpus,
              const std::filesystem::path& resumed = {});

  ResolvedRecipe resolved;
  GemmPlans plans;
  StepTrace trace;
  StepBatches batches;
  BatchStream validation;
};

}  // namespace tilewave
