// Recipes small enough to train within a test, and runs of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "framework/tensor/host_tensor.h"
#include "kernels/core/device.h"
#include "kernels/core/error.h"
#include "kernels/core/queue.h"
#include "models/recipe/corpus_of.h"
#include "models/step/step_plans.h"
#include "models/step/train_step.h"

namespace tilewave {

// An encoder-decoder on made-up ids, dropout on; overrides as --set gives them.
inline Recipe small_recipe(const std::vector<std::string>& overrides = {}) {
  constexpr const char* kText = R"(
[model]
d_model = 32
d_ff = 48
heads = 2
encoder_layers = 1
decoder_layers = 2
vocabulary = 61
max_positions = 16
dropout = 0.1
attention_dropout = 0.1
[data]
kind = "synthetic"
[batch]
source_tokens = 45
target_tokens = 50
sequence = 12
[optimizer]
label_smoothing = 0.1
[schedule]
warmup_steps = 4
[run]
steps = 8
validate_every = 0
checkpoint_every = 3
)";
  return parse_recipe({.source = "small.toml", .text = kText}, overrides);
}

// An encoder of drawn digits, dropout on.
inline Recipe small_classifier(const std::vector<std::string>& overrides = {}) {
  constexpr const char* kText = R"(
[model]
architecture = "encoder_classifier"
d_model = 16
d_ff = 24
heads = 2
encoder_layers = 1
positions = "learned"
dropout = 0.1
attention_dropout = 0.1
stem = "patch"
patch = 5
[data]
kind = "pictures"
picture_size = 20
[batch]
pictures = 24
accumulate = 2
[schedule]
warmup_steps = 2
[run]
steps = 6
validate_every = 3
checkpoint_every = 3
)";
  return parse_recipe({.source = "seeing.toml", .text = kText}, overrides);
}

// An encoder of drawn digits and a decoder that writes their names, dropout on.
inline Recipe small_captioner(const std::vector<std::string>& overrides = {}) {
  constexpr const char* kText = R"(
[model]
architecture = "encoder_decoder"
d_model = 16
d_ff = 24
heads = 2
encoder_layers = 1
decoder_layers = 1
vocabulary = 264
max_positions = 8
dropout = 0.1
attention_dropout = 0.1
positions = "learned"
stem = "patch"
patch = 5
[data]
kind = "captions"
tokenizer = "bytes"
picture_size = 20
[batch]
pictures = 12
target_tokens = 80
sequence = 8
accumulate = 2
[schedule]
warmup_steps = 2
[run]
steps = 6
validate_every = 3
checkpoint_every = 3
)";
  return parse_recipe({.source = "captions.toml", .text = kText}, overrides);
}

inline const std::vector<std::string> kDecoderOnly = {"model.architecture=decoder_only", "model.encoder_layers=0", "batch.source_tokens=0",
                                                      "model.activation=gelu_tanh", "model.positions=learned"};

// Keys that do not go together, and the sentence that says so.
struct RefusedRecipe {
  std::vector<std::string> overrides;
  std::string sentence;
};

// The sentence of the InputError that a function throws.
template <class Function>
std::string refusal_by(Function&& function) {
  try {
    function();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

// The launches that a trace stands for: its later pass as often as there are later ones.
inline std::vector<TraceEntry> every_launch(const Trace& trace) {
  std::vector<TraceEntry> all;
  for (auto first = trace.entries.begin(); first != trace.entries.end();) {
    const auto last = std::find_if(first, trace.entries.end(), [&](const TraceEntry& entry) { return entry.times != first->times; });
    for (std::int64_t i = 0; i < first->times; ++i) all.insert(all.end(), first, last);
    first = last;
  }
  for (TraceEntry& entry : all) entry.times = 1;
  return all;
}

struct SmallRun {
  explicit SmallRun(const Recipe& recipe, int threads = 2) : SmallRun(recipe, make_cpu_queue(threads), probe_cpu(threads)) {}
  SmallRun(const Recipe& recipe, Queue queue, const DeviceInfo& device, const Communicator& ranks = {})
      : resolved(resolve(recipe)),
        corpus(corpus_of(recipe)),
        context(std::move(queue), device, context_options(recipe, {}, ranks)),
        step(context, resolved),
        stream(corpus.training(batch_shape(resolved))) {}

  StepReport advance(Update update = Update::yes) {
    std::vector<Batch> batches;
    for (std::int64_t i = 0; i < resolved.recipe.batch.accumulate; ++i) batches.push_back(*stream.next());
    return step.run(batches, ++done, update);
  }
  std::vector<double> losses(int steps) {
    std::vector<double> losses;
    for (int i = 0; i < steps; ++i) losses.push_back(advance().loss);
    return losses;
  }
  // Logical elements of every parameter, one after another.
  std::vector<double> weights() {
    std::vector<double> all;
    for (const Parameter& parameter : step.parameters().all()) {
      const std::vector<double> own = read_elements(context, parameter.logical_master());
      all.insert(all.end(), own.begin(), own.end());
    }
    return all;
  }

  ResolvedRecipe resolved;
  Corpus corpus;
  Context context;
  TrainStep step;
  BatchStream stream;
  std::int64_t done = 0;
};

}  // namespace tilewave
