#include "models/step/step_file.h"

#include "models/transformer/weight_files.h"

namespace tilewave {
namespace {

template <class T>
TensorSource scalar(std::string name, T value) {
  return {.name = std::move(name),
          .type = sizeof(T) == sizeof(double) ? StoredType::f64 : StoredType::f32,
          .shape = {1},
          .stream = [value](const ByteSink& sink) { sink(std::as_bytes(std::span(&value, 1))); }};
}

}  // namespace

SafetensorsContents step_contents(TrainStep& step, const StepReport& report, Update update) {
  Parameters& parameters = step.model().parameters();
  SafetensorsContents contents{.tensors = {}, .metadata = file_metadata(parameters, "step")};
  contents.metadata["target_tokens"] = std::to_string(report.target_tokens);
  contents.tensors.push_back(step.context().precision().statistics == DType::f64 ? scalar("loss", report.loss)
                                                                                 : scalar("loss", static_cast<float>(report.loss)));
  if (update == Update::no) parameters.zero_unwritten_gradients();
  add_gradients(contents, parameters, "gradient/");
  if (update == Update::yes) add_weights(contents, parameters, "weight/");
  return contents;
}

}  // namespace tilewave
