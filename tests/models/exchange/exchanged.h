// Models and batches of tests/fixtures/gpt2, which transformers has made (tests/fixtures/make_gpt2.py).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "framework/io/safetensors_reader.h"
#include "framework/tensor/host_tensor.h"
#include "models/exchange/import_config.h"
#include "models/exchange/initial_weights.h"
#include "models/step/batch_file.h"
#include "models/step/train_step.h"
#include "tests/test_environment.h"

namespace tilewave {

inline std::filesystem::path exchanged(const std::string& name) { return test_environment().data / "fixtures" / "gpt2" / name; }

struct ExchangedModel {
  explicit ExchangedModel(const Recipe& recipe)
      : resolved(resolve(recipe)), context(make_cpu_queue(1), probe_cpu(1), context_options(resolved.recipe)), step(context, resolved) {}

  WeightOrigin load(const std::filesystem::path& path, WeightFit fit = WeightFit::whole) {
    return load_initial_weights({.path = path, .fit = fit}, step.model().parameters());
  }
  std::vector<double> values(const std::string& parameter) {
    return read_elements(context, step.model().parameters().find(parameter)->logical_master());
  }

  ResolvedRecipe resolved;
  Context context;
  TrainStep step;
};

// Logits of every token of a batch file, [tokens, V].
inline std::vector<double> logits_of(const Recipe& asked, const std::filesystem::path& weights, const std::filesystem::path& batch) {
  const BatchFile file = read_batch_file(batch, asked.model);
  ExchangedModel model(recipe_of_step(asked, file));
  model.load(weights);
  const NoGradient scope(model.context);
  const BatchShape shape = batch_shape(model.resolved);
  const BatchTensors tensors = make_batch_tensors(model.context, shape);
  upload(model.context, pack(file, shape), tensors);
  std::int64_t tokens = 0;
  for (const std::int32_t length : file.target_lengths) tokens += length;
  const Tensor logits = model.step.model().logits(tensors, shape.sequence, {}).value();
  return read_elements(model.context, logits.slice_rows(0, tokens).columns(0, asked.model.vocabulary));
}

inline std::vector<double> stored_doubles(const std::filesystem::path& path, const std::string& name) {
  const SafetensorsReader reader(path);
  const StoredTensor& tensor = reader.at(name);
  std::vector<double> values(static_cast<std::size_t>(tensor.bytes) / sizeof(double));
  reader.read(tensor, std::as_writable_bytes(std::span(values)));
  return values;
}

inline double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size() || a.empty()) return 1e300;
  double largest = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

// The recipe of the fixture torch/.
inline Recipe torch_recipe(const std::vector<std::string>& overrides = {}) {
  constexpr const char* kText = R"(
[model]
d_model = 16
d_ff = 24
heads = 2
encoder_layers = 1
decoder_layers = 2
vocabulary = 37
max_positions = 12
positions = "learned"
[data]
kind = "synthetic"
[batch]
source_tokens = 16
target_tokens = 16
sequence = 12
)";
  return parse_recipe({.source = "torch.toml", .text = kText}, overrides);
}

}  // namespace tilewave
