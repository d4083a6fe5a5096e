#include "models/training/classification.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <span>
#include <utility>

#include "framework/data/corpus.h"
#include "framework/io/checkpoint.h"
#include "framework/io/run_folder.h"
#include "framework/tensor/host_tensor.h"
#include "models/decoding/trained_model.h"
#include "models/step/train_step.h"
#include "models/training/picture_files.h"
#include "models/transformer/weight_files.h"

namespace tilewave {
namespace {

// softmax(logits), the likeliest first.
std::vector<ClassProbability> likeliest_of(std::span<const double> logits, std::int64_t top) {
  std::vector<ClassProbability> classes(logits.size());
  const double largest = *std::ranges::max_element(logits);
  double sum = 0.0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    classes[i] = {.label = static_cast<std::int64_t>(i), .probability = std::exp(logits[i] - largest)};
    sum += classes[i].probability;
  }
  for (ClassProbability& one : classes) one.probability /= sum;
  std::ranges::stable_sort(classes, std::greater<>(), &ClassProbability::probability);
  classes.resize(std::min(classes.size(), static_cast<std::size_t>(top)));
  return classes;
}

}  // namespace

Classification classify(const ClassificationRequest& request) {
  TW_CHECK_INPUT(is_there(request.run / "recipe.toml"), request.run.string(),
                 ": there is no recipe.toml, so this is no run folder; name one that ./tilewave train has made.");
  const Recipe recipe = decoded_on(read_recipe(request.run / "recipe.toml"), request.device);
  TW_CHECK_INPUT(classifies(recipe.model), request.run.string(), ": the run's model.architecture is \"", name_of(recipe.model.architecture),
                 "\", and pictures are told apart by an \"encoder_classifier\"; ",
                 captions(recipe.model) ? "tilewave caption says what they show." : "name a run of one.");
  const ClassifierShape shape = classifier_shape(recipe);
  NamedPictures read = read_picture_files(request.files, shape.picture);
  read.stored.classes = shape.classes;

  const ResolvedRecipe resolved = resolve(recipe);
  Context context(request.queue, request.device, context_options(recipe));
  TrainStep step(context, resolved);
  CheckpointSearch search =
      use_latest_valid(request.run, [&](const Checkpoint& checkpoint) { load_weights(checkpoint.weights(), step.parameters()); });
  TW_CHECK_INPUT(search.newest, request.run.string(),
                 ": there is no valid checkpoint yet; train for longer or with a smaller run.checkpoint_every.");
  Classification result{.step = search.newest->step, .pictures = {}, .notes = std::move(search.skipped)};
  if (read.names.empty()) return result;

  BatchStream batches = picture_stream(picture_set(std::move(read.stored)), batch_shape(resolved), {});
  while (const std::optional<Batch> batch = batches.next()) {
    const std::vector<double> logits = read_elements(context, step.logits(*batch));
    const std::size_t classes = logits.size() / batch->target_out.size();
    for (std::size_t i = 0; i < batch->target_out.size() && result.pictures.size() < read.names.size(); ++i) {
      result.pictures.push_back({.name = read.names[result.pictures.size()],
                                 .likeliest = likeliest_of(std::span(logits).subspan(i * classes, classes), request.top)});
    }
  }
  return result;
}

}  // namespace tilewave
