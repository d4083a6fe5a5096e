// Reading a run folder back.
#include "models/decoding/trained_model.h"

#include <utility>

#include "framework/io/checkpoint.h"
#include "framework/io/run_folder.h"
#include "models/recipe/run_tokenizer.h"
#include "models/step/train_step.h"
#include "models/transformer/weight_files.h"

namespace tilewave {

Recipe decoded_on(Recipe recipe, const DeviceInfo& device) {
  recipe.gemm.engine = GemmEngine::tilewave;
  recipe.gemm.choice = GemmConfig().choice;
  const Precision precision = recipe.run.precision;
  if (device.backend == Backend::cpu && (precision == Precision::bf16 || precision == Precision::fp16))
    recipe.run.precision = Precision::fp32;
  return recipe;
}

namespace {

void check_found(const std::filesystem::path& run_folder, const CheckpointSearch& search) {
  std::string reasons;
  for (const std::string& reason : search.skipped) reasons += " " + reason;
  TW_CHECK_INPUT(search.newest, run_folder.string(),
                 ": there is no valid checkpoint yet; train for longer or with a smaller run.checkpoint_every.", reasons);
}

}  // namespace

TrainedModel open_trained_model(const std::filesystem::path& run_folder, Queue queue, const DeviceInfo& device,
                                const InitialWeights& weights) {
  TW_CHECK_INPUT(is_there(run_folder / "recipe.toml"), run_folder.string(),
                 ": there is no recipe.toml, so this is no run folder; name one that ./tilewave train has made.");
  const bool own = weights.path.empty();
  if (own && !has_complete_checkpoints(run_folder)) check_found(run_folder, find_latest_valid(run_folder));

  const Recipe recipe = decoded_on(read_recipe(run_folder / "recipe.toml"), device);
  if (classifies(recipe.model)) check_reads_tokens(recipe, concat(run_folder.string(), ": what is asked"));
  TrainedModel trained{.resolved = {}, .tokenizer = {}, .context = {}, .model = {}, .notes = {}};
  trained.tokenizer = tokenizer_of_run(run_folder, recipe);
  trained.resolved = resolve(recipe, {.vocabulary = trained.tokenizer ? trained.tokenizer->vocabulary() : 0});
  trained.context = std::make_unique<Context>(std::move(queue), device, context_options(recipe));
  trained.model = std::make_unique<Transformer>(
      *trained.context, recipe.model,
      ModelData{.padded_vocabulary = trained.resolved.shapes.vocabulary_padded, .picture = pictures_of(recipe)},
      static_cast<std::uint64_t>(recipe.run.seed));
  if (!own) {
    trained.notes = load_initial_weights(weights, trained.model->parameters()).told();
    return trained;
  }
  CheckpointSearch search =
      use_latest_valid(run_folder, [&](const Checkpoint& checkpoint) { load_weights(checkpoint.weights(), trained.model->parameters()); });
  check_found(run_folder, search);
  trained.step = search.newest->step;
  trained.notes = std::move(search.skipped);
  if (!trained.notes.empty()) trained.notes.push_back(concat("these are the weights after step ", trained.step, "."));
  return trained;
}

}  // namespace tilewave
