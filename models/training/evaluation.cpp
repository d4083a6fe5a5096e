#include "models/training/evaluation.h"

#include <cmath>
#include <utility>

#include "framework/io/checkpoint.h"
#include "models/decoding/decode.h"
#include "models/decoding/trained_model.h"
#include "models/recipe/corpus_of.h"
#include "models/recipe/run_tokenizer.h"
#include "models/training/run_files.h"
#include "models/training/test_pairs.h"
#include "models/transformer/weight_files.h"

namespace tilewave {
namespace {

// The recipe with the data that is asked for in the place of the run's.
Recipe with_data(Recipe recipe, const EvaluationRequest& request) {
  DataConfig& data = recipe.data;
  const std::string kind = concat("the run's data.kind is \"", name_of(data.kind), "\"");
  if (request.data.empty()) {
    TW_CHECK_INPUT(request.target.empty(), "--target ", request.target.string(), " goes with --data FILE, which it translates.");
    return recipe;
  }
  TW_CHECK_INPUT(data.kind != DataKind::pictures, "--data ", request.data.string(), ": ", kind,
                 ", which are measured on what the run validated on; leave --data out.");
  const bool pairs = data.kind == DataKind::parallel;
  TW_CHECK_INPUT(pairs || data.kind == DataKind::text || data.kind == DataKind::tokens, "--data ", request.data.string(), ": ", kind,
                 ", which reads no file; leave --data out.");
  TW_CHECK_INPUT(pairs == !request.target.empty(), "--data ", request.data.string(),
                 pairs ? " needs --target FILE beside it: " : " goes without --target: ", kind,
                 pairs ? ", whose pairs have two sides." : ".");
  data.source = data.validation_source = request.data.string();
  data.target = data.validation_target = request.target.string();
  return recipe;
}

struct LoadedWeights {
  std::int64_t step = 0;
  std::vector<std::string> notes;
};

LoadedWeights load(const EvaluationRequest& request, Parameters& parameters) {
  if (!request.weights.path.empty()) return {.notes = load_initial_weights(request.weights, parameters).told()};
  CheckpointSearch search =
      use_latest_valid(request.run, [&](const Checkpoint& checkpoint) { load_weights(checkpoint.weights(), parameters); });
  TW_CHECK_INPUT(search.newest, request.run.string(),
                 ": there is no valid checkpoint yet; train for longer or with a smaller run.checkpoint_every.");
  return {.step = search.newest->step, .notes = std::move(search.skipped)};
}

void translate_pairs(TrainStep& step, const Corpus& corpus, const Recipe& recipe, const EvaluationRequest& request, Evaluation& result) {
  const TestPairs asked = test_pairs_of(corpus, recipe);
  if (asked.pairs.empty()) return;
  const auto left_out = std::ssize(corpus.test_pairs()) - std::ssize(asked.pairs);
  if (left_out > 0) {
    result.notes.push_back(concat(left_out, " of ", corpus.test_pairs().size(), " pairs are longer than batch.sequence = ",
                                  recipe.batch.sequence, " on a side and not translated; no score counts them."));
  }
  step.release_step_memory();
  const Tokenizer& tokenizer = *corpus.tokenizer();
  const std::vector<std::vector<std::int32_t>> targets = translate(step.model(), asked.sources,
                                                                   {.beams = request.beams,
                                                                    .drawn = target_ids(tokenizer),
                                                                    .vocabulary = tokenizer.vocabulary(),
                                                                    .positions = recipe.batch.sequence,
                                                                    .interrupted = request.interrupted});
  for (std::size_t i = 0; i < targets.size(); ++i) {
    result.translations.push_back(tokenizer.decode(targets[i]));
    result.references.push_back(asked.pairs[i]->target);
  }
}

}  // namespace

Evaluation evaluate_run(const EvaluationRequest& request) {
  TW_CHECK_INPUT(is_there(request.run / "recipe.toml"), request.run.string(),
                 ": there is no recipe.toml, so this is no run folder; name one that ./tilewave train has made.");
  Recipe recipe = with_data(decoded_on(read_recipe(request.run / "recipe.toml"), request.device), request);
  recipe.run.ranks = 1;  // whatever the run was trained on
  check_files(recipe);
  const Corpus corpus = corpus_of(recipe, tokenizer_of_run(request.run, recipe));
  const ResolvedRecipe resolved = resolve(recipe, {.vocabulary = corpus.tokenizer() ? corpus.tokenizer()->vocabulary() : 0});
  Context context(request.queue, request.device, context_options(recipe));
  TrainStep step(context, resolved);
  LoadedWeights loaded = load(request, step.parameters());
  Evaluation result{.step = loaded.step, .loss = {}, .pairs = {}, .translations = {}, .references = {}, .notes = std::move(loaded.notes)};
  const BatchStream validation = corpus.validation(batch_shape(resolved));
  result.pairs = validation_pairs_of(corpus, validation);
  const std::optional<ValidationLoss> loss = step.validate(validation, request.interrupted);
  if (loss) result.loss = *loss;
  if (loss && !request.interrupted() && !sees_pictures(recipe.model)) translate_pairs(step, corpus, recipe, request, result);
  result.interrupted = request.interrupted();
  return result;
}

}  // namespace tilewave
