// tw_train: a run as models/training/trainer.h makes it, what happens told to the caller's functions.
#include <csignal>

#include "framework/io/json_lines.h"
#include "interface/guard.h"
#include "interface/recipes.h"
#include "kernels/core/error.h"
#include "models/training/trainer.h"

namespace tilewave {
namespace {

Queue queue_on(const DeviceInfo& device, int32_t threads) {
  if (device.backend == Backend::cuda) return make_cuda_queue(device.index);
  return make_cpu_queue(threads);
}

TrainingRequest request_of(const tw_train_request& given, const bool& stops) {
  Recipe recipe = recipe_of(given.recipe);
  const DeviceInfo device = device_of(given.device, given.threads);
  return {.recipe = recipe,
          .run = {.recipe = recipe.name,
                  .folder = text_of(given.run),
                  .start = given.resume != 0 ? RunStart::resume : RunStart::fresh,
                  .overwrite = given.force != 0 ? Overwrite::force : Overwrite::refuse},
          .queue = queue_on(device, given.threads),
          .device = device,
          .profile = {},
          .weights = {.path = text_of(given.weights)},
          .stop_signal = [&given, &stops] {
            const bool asked = stops || (given.stopped != nullptr && given.stopped(given.caller) != 0);
            return asked ? SIGINT : 0;
          }};
}

TrainingObserver observer_of(const tw_train_request& given, bool& stops) {
  return {.beginning = [&given] { return given.stopped != nullptr && given.stopped(given.caller) != 0 ? SIGINT : 0; },
          .stepped =
              [&given, &stops](const TrainingProgress& progress) {
                if (given.on_step == nullptr) return;
                const tw_step step{.step = progress.step.step,
                                   .target_tokens = progress.step.target_tokens,
                                   .loss = progress.step.loss,
                                   .learning_rate = progress.step.learning_rate,
                                   .gradient_norm = progress.step.gradient_norm,
                                   .target_tokens_per_s = progress.target_tokens_per_s,
                                   .elapsed_s = progress.elapsed_s};
                stops = given.on_step(given.caller, &step) != 0 || stops;
              },
          .validated =
              [&given](std::int64_t step, const ValidationLoss& loss) {
                if (given.on_validation != nullptr) given.on_validation(given.caller, step, loss.loss);
              },
          .noted =
              [&given](const std::string& sentence) {
                if (given.on_note != nullptr) given.on_note(given.caller, sentence.c_str());
              }};
}

std::string json_of(const TrainingResult& result) {
  JsonObject object;
  object.add("run", result.folder.string()).add("steps", result.steps).add("stopped", result.signal != 0);
  if (result.signal == 0) add_numbers(object, result);
  return object.add("target_tokens_per_s", result.target_tokens_per_s).add("seconds", result.seconds).text();
}

}  // namespace
}  // namespace tilewave

using namespace tilewave;

tw_status tw_train(const tw_train_request* request, char** json) {
  return guarded([&] {
    TW_CHECK_INPUT(request != nullptr && json != nullptr, "tw_train takes a request and a place for its answer.");
    *json = nullptr;
    bool stops = false;
    const TrainingResult result = train(request_of(*request, stops), observer_of(*request, stops));
    if (result.signal == 0 || !result.folder.empty()) *json = handed_over(json_of(result));
    return result.signal == 0 ? TW_OK : TW_STOPPED;
  });
}
