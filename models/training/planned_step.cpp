#include "models/training/planned_step.h"

#include <algorithm>
#include <utility>

#include "models/decoding/decoding_memory.h"
#include "models/planning/resolve.h"
#include "models/recipe/corpus_of.h"
#include "models/step/memory_check.h"
#include "models/training/test_pairs.h"

namespace tilewave {
namespace {

// The plans that the run began with, where it is resumed as it was; else those that the recipe asks to be measured.
GemmPlans plans_of(const ResolvedRecipe& resolved, const StepPlansRequest& request, const std::filesystem::path& resumed) {
  if (!resumed.empty() && read_recipe(resumed / "recipe.toml").gemm == resolved.recipe.gemm) {
    GemmPlans plans = stored_plans(resumed, request);
    if (!plans.empty()) return plans;
  }
  return plans_for_step(resolved, request);
}

// The trace of the step and of what follows the last one; throws where it does not fit into memory.
StepTrace traced(const ResolvedRecipe& resolved, const TrainingRequest& request, const GemmPlans& plans, const Corpus& corpus) {
  StepTrace trace = trace_step(resolved, request.device, {.plans = plans, .ranks = request.ranks});
  std::size_t longest = 0;
  for (const std::vector<std::int32_t>& source : test_pairs_of(corpus, resolved.recipe).sources) longest = std::max(longest, source.size());
  if (longest > 0) trace.decoding_bytes = least_decoding_bytes(resolved, request.device, static_cast<std::int64_t>(longest));
  Queue queue = request.queue;
  if (const std::optional<std::int64_t> free = free_bytes(queue)) check_memory(resolved, trace, request.device, *free);
  return trace;
}

bool trains_tokenizer(const DataConfig& data) { return data.tokenizer_source() == TokenizerSource::trained && uses_tokenizer(data); }

}  // namespace

Corpus read_corpus(const Recipe& recipe, std::optional<Tokenizer> tokenizer, const TrainingObserver& observer) {
  const DataConfig& data = recipe.data;
  if (!data.pictures.empty()) observer.noted(concat("reading ", data.pictures));
  if (data.kind != DataKind::number_names && data.kind != DataKind::synthetic && data.kind != DataKind::pictures) {
    observer.noted(concat("reading ", data.source, !tokenizer && trains_tokenizer(data) ? " and training a tokenizer on it" : ""));
  }
  Corpus corpus = corpus_of(recipe, std::move(tokenizer));
  for (const std::string& note : corpus.notes()) observer.noted(note);
  const std::optional<Tokenizer>& own = corpus.tokenizer();
  if (own && data.tokenizer_source() == TokenizerSource::file && own->vocabulary() < recipe.model.vocabulary) {
    observer.noted(concat("model.vocabulary = ", recipe.model.vocabulary, ", and the tokenizer of data.tokenizer has ", own->vocabulary(),
                          " ids: those behind them are never seen and never drawn."));
  }
  return corpus;
}

PlannedStep::PlannedStep(const TrainingRequest& request, const TrainingObserver& observer, const Recipe& recipe, const Corpus& corpus,
                         const std::filesystem::path& resumed)
    : resolved(resolve_with(corpus, recipe, request.device)),
      plans(plans_of(resolved, {.queue = request.queue, .device = request.device, .noted = observer.noted}, resumed)),
      trace(traced(resolved, request, plans, corpus)),
      batches(corpus, batch_shape(resolved), resolved.recipe.batch.accumulate),
      validation(corpus.validation(batch_shape(resolved))) {}

}  // namespace tilewave
