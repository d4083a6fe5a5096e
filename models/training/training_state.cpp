// state.json, and the three files of a checkpoint together.
#include "models/training/training_state.h"

#include <nlohmann/json.hpp>

#include "framework/io/file.h"
#include "framework/io/json_fault.h"
#include "models/transformer/weight_files.h"

namespace tilewave {
namespace {

constexpr std::int64_t kMaxStateBytes = 16 << 20;
constexpr int kStateVersion = 2;  // 1: without the position's rows_before

nlohmann::ordered_json position_json(const DataPosition& position) {
  nlohmann::ordered_json json = {{"epoch", position.epoch}, {"next", position.next}};
  if (position.rows_before) json["rows_before"] = *position.rows_before;
  return json;
}

DataPosition position_of(const nlohmann::json& json) {
  DataPosition position{
      .epoch = json.at("epoch").get<std::uint64_t>(), .next = json.at("next").get<std::uint64_t>(), .rows_before = std::nullopt};
  if (json.contains("rows_before")) position.rows_before = json.at("rows_before").get<std::uint64_t>();
  return position;
}

}  // namespace

std::string to_json(const TrainingState& state, TrainStep& step) {
  nlohmann::ordered_json json = {{"version", kStateVersion},
                                 {"step", state.step},
                                 {"data_position", position_json(state.position)},
                                 {"corpus_fingerprint", state.corpus},
                                 {"recipe_hash", state.recipe_hash},
                                 {"seed", step.resolved().recipe.run.seed},
                                 {"vocabulary", state.vocabulary},
                                 {"vocabulary_padded", state.vocabulary_padded},
                                 {"loss", state.loss},
                                 {"elapsed_s", state.elapsed_s},
                                 {"target_tokens", state.target_tokens}};
  if (state.validation_loss) json["validation_loss"] = *state.validation_loss;
  if (step.optimizer().options().scaling.enabled) {
    const StepState scaling = step.context().read_step_state();
    json["loss_scale"] = scaling.loss_scale;
    json["good_steps"] = scaling.good_steps;
  }
  return json.dump(1) + "\n";
}

TrainingState read_training_state(const std::filesystem::path& path) {
  const std::string text = read_file(path, kMaxStateBytes);
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    const int version = json.at("version").get<int>();
    TW_CHECK_INPUT(version >= 1 && version <= kStateVersion, path.string(), ": this state has version ", version,
                   ", and this tilewave reads versions 1 to ", kStateVersion, "; resume with the tilewave that wrote it.");
    return {.step = json.at("step").get<std::int64_t>(),
            .position = position_of(json.at("data_position")),
            .corpus = json.at("corpus_fingerprint").get<std::uint64_t>(),
            .recipe_hash = json.at("recipe_hash").get<std::string>(),
            .vocabulary = json.at("vocabulary").get<std::int64_t>(),
            .vocabulary_padded = json.at("vocabulary_padded").get<std::int64_t>(),
            .loss_scale = json.contains("loss_scale") ? std::optional(json.at("loss_scale").get<double>()) : std::nullopt,
            .good_steps = json.value("good_steps", std::int64_t{0}),
            .loss = json.at("loss").get<double>(),
            .validation_loss = json.contains("validation_loss") ? std::optional(json.at("validation_loss").get<double>()) : std::nullopt,
            .elapsed_s = json.at("elapsed_s").get<double>(),
            .target_tokens = json.at("target_tokens").get<std::int64_t>()};
  } catch (const nlohmann::json::exception& error) {
    throw InputError(
        concat(path.string(), ": this is no training state of tilewave (", json_fault(error), "); resume from another checkpoint."));
  }
}

Checkpoint save_training(const std::filesystem::path& run_folder, TrainStep& step, const TrainingState& state, std::int64_t keep) {
  Parameters& parameters = step.parameters();
  CheckpointContents contents{.step = state.step,
                              .weights = weight_contents(parameters),
                              .optimizer = optimizer_contents(parameters, step.optimizer()),
                              .state = to_json(state, step)};
  bool told = false;
  TensorSource& first = contents.weights.tensors.front();
  first.stream = [&told, stream = first.stream](const ByteSink& sink) {
    told = true;
    stream(sink);
  };
  const Checkpoint checkpoint = save_checkpoint(run_folder, contents, static_cast<int>(keep));
  if (!told && parameters.sharding() != Sharding::none) tell_shares(step);  // it is there already: the others tell all the same
  return checkpoint;
}

void tell_shares(TrainStep& step) {
  Parameters& parameters = step.parameters();
  TW_CHECK(parameters.sharding() != Sharding::none, "the first rank knows all of a state that is not in shares.");
  for (const SafetensorsContents& contents : {weight_contents(parameters), optimizer_contents(parameters, step.optimizer())}) {
    for (const TensorSource& tensor : contents.tensors) tensor.stream([](std::span<const std::byte>) {});
  }
}

TrainingState restore_training(const Checkpoint& checkpoint, TrainStep& step) {
  load_weights(checkpoint.weights(), step.parameters());
  load_optimizer(checkpoint.optimizer(), step.parameters(), step.optimizer());
  const TrainingState state = read_training_state(checkpoint.state());
  if (state.loss_scale && step.optimizer().options().scaling.enabled) {
    step.context().write_step_state({.loss_scale = *state.loss_scale, .good_steps = state.good_steps});
  }
  return state;
}

}  // namespace tilewave
