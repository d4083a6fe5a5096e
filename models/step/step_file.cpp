#include "models/step/step_file.h"

#include <charconv>
#include <cstring>
#include <memory>
#include <vector>

#include "framework/tensor/host_tensor.h"
#include "models/transformer/weight_files.h"

namespace tilewave {
namespace {

template <class T>
TensorSource numbers(std::string name, std::vector<T> values, std::vector<std::int64_t> shape) {
  return {.name = std::move(name),
          .type = sizeof(T) == sizeof(double) ? StoredType::f64 : StoredType::f32,
          .shape = std::move(shape),
          .stream = [values = std::move(values)](const ByteSink& sink) { sink(std::as_bytes(std::span(values))); }};
}

// In the type that the step's statistics have.
TensorSource numbers(TrainStep& step, std::string name, const std::vector<double>& values, std::vector<std::int64_t> shape) {
  if (step.context().precision().statistics == DType::f64) return numbers(std::move(name), values, std::move(shape));
  return numbers(std::move(name), std::vector<float>(values.begin(), values.end()), std::move(shape));
}

TensorSource of_each(TrainStep& step, std::string name, std::span<const StepReport> reports, double StepReport::*field) {
  std::vector<double> values;
  for (const StepReport& report : reports) values.push_back(report.*field);
  return numbers(step, std::move(name), values, {std::ssize(values)});
}

constexpr const char* kStepsDone = "step";

}  // namespace

SafetensorsContents step_contents(TrainStep& step, std::span<const StepReport> reports, Update update) {
  Parameters& parameters = step.parameters();
  SafetensorsContents contents{.tensors = {}, .metadata = file_metadata(parameters, kStepContent)};
  contents.metadata["target_tokens"] = std::to_string(reports.back().target_tokens);
  contents.tensors.push_back(of_each(step, "loss", reports, &StepReport::loss));
  if (update == Update::no) parameters.zero_unwritten_gradients();
  add_gradients(contents, parameters, "gradient/");
  if (update == Update::no) return contents;
  contents.metadata[kStepsDone] = std::to_string(reports.back().step);
  contents.tensors.push_back(of_each(step, "learning_rate", reports, &StepReport::learning_rate));
  contents.tensors.push_back(of_each(step, "gradient_norm", reports, &StepReport::gradient_norm));
  add_weights(contents, parameters, kWeightPrefix);
  add_moments(contents, parameters, step.optimizer());
  return contents;
}

std::int64_t steps_done(const SafetensorsReader& optimizer) {
  const auto found = optimizer.metadata().find(kStepsDone);
  std::int64_t steps = 0;
  if (found == optimizer.metadata().end()) return steps;
  const char* const end = found->second.data() + found->second.size();
  const auto [stop, error] = std::from_chars(found->second.data(), end, steps);
  TW_CHECK_INPUT(error == std::errc() && stop == end && steps > 0, optimizer.path().string(), ": its metadata says \"", kStepsDone,
                 "\": \"", printable(found->second), "\", which is no number of steps; take a file that tilewave step wrote.");
  return steps;
}

void add_logits(SafetensorsContents& contents, TrainStep& step, std::string name, const BatchFile& file) {
  const std::int64_t vocabulary = step.resolved().shapes.vocabulary, sequences = file.target_in.rows, longest = file.target_in.cols;
  const Tensor logits = step.logits(pack(file, batch_shape(step.resolved())));
  std::vector<double> values(static_cast<std::size_t>(sequences * longest * vocabulary), 0.0);
  std::int64_t row = 0;
  for (std::int64_t i = 0; i < sequences; ++i) {
    const std::int64_t length = file.target_lengths[static_cast<std::size_t>(i)];
    const std::vector<double> rows = read_elements(step.context(), logits.slice_rows(row, length).columns(0, vocabulary));
    std::copy(rows.begin(), rows.end(), values.begin() + i * longest * vocabulary);
    row += length;
  }
  contents.tensors.push_back(numbers(step, std::move(name), values, {sequences, longest, vocabulary}));
}

}  // namespace tilewave
