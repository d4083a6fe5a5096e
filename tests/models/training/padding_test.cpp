// Padding is invisible, as properties over random vocabularies, rows and switches: loss, gradients, gradient norm, random streams
// (dropout is on), updated weights and samples are those of the plain recipe, padded rows stay zero, and a checkpoint goes on under
// other switches. On a CPU what changes no order of sums changes no bit.
#include <algorithm>
#include <cmath>
#include <deque>
#include <filesystem>
#include <numeric>

#include "framework/io/safetensors_writer.h"
#include "framework/tensor/random.h"
#include "models/decoding/decode.h"
#include "models/study/same_loss.h"
#include "models/transformer/weight_files.h"
#include "tests/kernels/gpu.h"
#include "tests/models/training/small_runs.h"
#include "tests/shell.h"

namespace tilewave {
namespace {

// A recipe and the same with its switches thrown.
struct Recipes {
  std::vector<std::string> plain, changed;
  bool same_order = false;  // of every sum
  std::string text;
};

Recipes random_pair(std::uint64_t seed) {
  Random random(random_key(7, seed));
  const auto below = [&](std::uint32_t most) { return static_cast<std::int64_t>(random.below(most)); };
  const auto one_of = [&](const std::vector<std::int64_t>& values) {
    return values[random.below(static_cast<std::uint32_t>(values.size()))];
  };
  // Now within one tile, now over several.
  const std::int64_t vocabulary = below(3) == 0 ? 1000 + below(3000) : 20 + below(200), source = 15 + below(60), target = 15 + below(60);
  const std::int64_t pad = one_of({1, 2, 8, 64, 100}), more_source = one_of({0, 0, 1, 8, 13}), more_target = one_of({0, 0, 1, 8, 13});
  const bool packed = below(2) == 1, feature_major = below(3) == 0, decoder_only = below(3) == 0;
  Recipes pair;
  if (decoder_only) pair.plain = kDecoderOnly;
  const auto rows = [&](std::int64_t more_s, std::int64_t more_t) {
    return std::vector<std::string>{concat("batch.source_tokens=", decoder_only ? 0 : source + more_s),
                                    concat("batch.target_tokens=", target + more_t)};
  };
  pair.plain.push_back(concat("model.vocabulary=", vocabulary));
  pair.changed = pair.plain;
  for (const std::string& key : rows(0, 0)) pair.plain.push_back(key);
  for (const std::string& key : rows(more_source, more_target)) pair.changed.push_back(key);
  pair.changed.push_back(concat("guidelines.pad_vocabulary_to=", pad));
  if (packed) pair.changed.push_back("guidelines.row_pitch=packed");
  if (feature_major) pair.changed.push_back("guidelines.ffn_hidden_layout=feature_major");
  pair.same_order = !feature_major && more_target == 0 && (decoder_only || more_source == 0);
  for (const std::string& key : pair.changed) pair.text += key + " ";
  return pair;
}

// How near two runs are that round otherwise, and whether both then draw the same tokens, trained and untrained.
struct Numbers {
  const char* precision;
  double tolerance;
  bool same_samples = true, same_untrained_samples = true;
};
constexpr Numbers kCpuNumbers[] = {{"fp32", 1e-3}, {"fp64", 1e-10}};
constexpr Numbers kGpuNumbers[] = {{"fp64", 1e-10}, {"fp32", 1e-3, false}, {"bf16", 5e-2, false, false}};

Recipe with_precision(std::vector<std::string> overrides, const Numbers& numbers) {
  overrides.push_back(concat("run.precision=", numbers.precision));
  return small_recipe(overrides);
}

using Samples = std::vector<std::vector<std::int32_t>>;

struct Seen {
  std::vector<double> losses, gradient_norms, gradients, weights;
  Samples untrained, samples;
};

// Rows behind the vocabulary, in whatever has them.
void expect_zero_padding(SmallRun& run) {
  const std::deque<Parameter>& parameters = run.step.model().parameters().all();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Parameter& parameter = parameters[i];
    const std::int64_t logical = parameter.shape().rows, stored = parameter.master.rows();
    if (stored == logical) continue;
    const auto expect_zero = [&](const char* what, const Tensor& tensor) {
      const std::vector<double> padding = read_elements(run.context, tensor.slice_rows(logical, stored - logical));
      EXPECT_TRUE(std::all_of(padding.begin(), padding.end(), [](double value) { return value == 0.0; })) << parameter.spec.name << what;
    };
    expect_zero("", parameter.master);
    expect_zero(", compute copy", parameter.variable.value());
    expect_zero(", gradient", parameter.variable.gradient());
    expect_zero(", first moment", run.step.optimizer().first_moment(i).whole());
    expect_zero(", second moment", run.step.optimizer().second_moment(i).whole());
  }
}

// Greedy and by beams, or drawn.
Samples samples_of(SmallRun& run) {
  const Samples prompts = {{9, 5, 12}, {4, 4, 17, 8}};
  if (run.resolved.shapes.source_rows > 0) {
    Samples samples = translate(run.step.model(), prompts, {.rows = 8});
    for (Samples::value_type& target : translate(run.step.model(), prompts, {.beams = 3, .rows = 8})) samples.push_back(std::move(target));
    return samples;
  }
  Samples samples(prompts.size());
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    generate(run.step.model(), prompts[i], {.tokens = 8, .seed = 5}, [&](std::int32_t id) { samples[i].push_back(id); });
  }
  return samples;
}

Seen see(SmallRun& run, const std::vector<Batch>& batches) {
  Seen seen;
  seen.untrained = samples_of(run);
  const auto batch = [&](std::size_t i) { return std::vector<Batch>{repacked(batches[i], batch_shape(run.resolved))}; };
  seen.losses.push_back(run.step.run(batch(0), 1, Update::no).loss);
  for (const Parameter& parameter : run.step.model().parameters().all()) {
    const std::vector<double> own = read_elements(run.context, parameter.logical_gradient());
    seen.gradients.insert(seen.gradients.end(), own.begin(), own.end());
  }
  expect_zero_padding(run);
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const StepReport report = run.step.run(batch(i), static_cast<std::int64_t>(i) + 1);
    seen.losses.push_back(report.loss);
    seen.gradient_norms.push_back(report.gradient_norm);
  }
  seen.weights = run.weights();
  expect_zero_padding(run);
  seen.samples = samples_of(run);
  for (const Samples* samples : {&seen.untrained, &seen.samples}) {
    for (const std::vector<std::int32_t>& sample : *samples) {
      for (const std::int32_t id : sample) EXPECT_LT(id, run.resolved.shapes.vocabulary);
    }
  }
  return seen;
}

void expect_near(const std::vector<double>& a, const std::vector<double>& b, double tolerance, const char* what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  double difference = 0.0, norm = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference = std::hypot(difference, a[i] - b[i]);
    norm = std::hypot(norm, b[i]);
  }
  EXPECT_GT(norm, 0.0) << what;
  EXPECT_LE(difference, tolerance * norm) << what;
}

void expect_same(const Seen& a, const Seen& b, const Numbers& numbers) {
  expect_near(a.losses, b.losses, numbers.tolerance, "losses");
  expect_near(a.gradient_norms, b.gradient_norms, numbers.tolerance, "gradient norms");
  expect_near(a.gradients, b.gradients, numbers.tolerance, "gradients");
  expect_near(a.weights, b.weights, numbers.tolerance, "weights");
  if (numbers.same_samples) {
    EXPECT_EQ(a.samples, b.samples);
  }
  if (numbers.same_untrained_samples) {
    EXPECT_EQ(a.untrained, b.untrained);
  }
}

std::vector<Batch> draw(SmallRun& run, int count) {
  std::vector<Batch> batches;
  for (int i = 0; i < count; ++i) batches.push_back(*run.stream.next());
  return batches;
}

TEST(Padding, IsInvisible) {
  std::int64_t exact = 0;
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    const Recipes pair = random_pair(seed);
    for (const Numbers& numbers : kCpuNumbers) {
      SCOPED_TRACE(concat(numbers.precision, " ", pair.text));
      SmallRun plain(with_precision(pair.plain, numbers)), changed(with_precision(pair.changed, numbers));
      const std::vector<Batch> batches = draw(plain, 3);
      const Seen expected = see(plain, batches), seen = see(changed, batches);
      expect_same(seen, expected, numbers);
      if (!pair.same_order) continue;
      ++exact;
      EXPECT_EQ(seen.losses, expected.losses);
      EXPECT_EQ(seen.gradient_norms, expected.gradient_norms);
      EXPECT_EQ(seen.gradients, expected.gradients);
      EXPECT_EQ(seen.weights, expected.weights);
    }
  }
  EXPECT_GT(exact, 4);
}

// What the property above would not forgive: with weights frozen, the step's number decides the random stream.
TEST(Padding, AnotherRandomStreamIsSeen) {
  SmallRun plain(small_recipe()), shifted(small_recipe());
  const std::vector<Batch> batches = draw(plain, 1);
  const std::vector<Batch> batch = {repacked(batches[0], batch_shape(plain.resolved))};
  const double loss = plain.step.run(batch, 1, Update::no).loss;
  EXPECT_EQ(shifted.step.run(batch, 1, Update::no).loss, loss);
  EXPECT_NE(shifted.step.run(batch, 2, Update::no).loss, loss);
}

// A run's files go on in a run of other switches, from plain to changed and back. `make` makes a run of a recipe.
template <class Make>
void expect_checkpoints_move(const Recipes& pair, const Numbers& numbers, const Make& make) {
  const TemporaryFolder folder;
  const std::filesystem::path weights = folder.path() / "model", moments = folder.path() / "optimizer";
  for (const bool back : {false, true}) {
    SCOPED_TRACE(concat(numbers.precision, back ? ", back from " : ", on to ", pair.text));
    SmallRun plain = make(with_precision(pair.plain, numbers)), changed = make(with_precision(pair.changed, numbers));
    const std::vector<Batch> batches = draw(plain, 4);
    SmallRun &from = back ? changed : plain, &to = back ? plain : changed;
    see(from, {batches.begin(), batches.end() - 1});
    write_safetensors(weights, weight_contents(from.step.model().parameters()));
    write_safetensors(moments, optimizer_contents(from.step.model().parameters(), from.step.optimizer()));
    load_weights(weights, to.step.model().parameters());
    load_optimizer(moments, to.step.model().parameters(), to.step.optimizer());
    EXPECT_EQ(to.weights(), from.weights());
    expect_zero_padding(to);
    const auto last = [&](SmallRun& run) {
      return run.step.run(std::vector<Batch>{repacked(batches.back(), batch_shape(run.resolved))}, 4);
    };
    const StepReport expected = last(from), report = last(to);
    EXPECT_NEAR(report.loss, expected.loss, numbers.tolerance * expected.loss);
    EXPECT_NEAR(report.gradient_norm, expected.gradient_norm, numbers.tolerance * expected.gradient_norm);
    expect_near(to.weights(), from.weights(), numbers.tolerance, "weights");
    expect_zero_padding(to);
  }
}

TEST(Padding, ACheckpointGoesOnUnderOtherSwitches) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const Recipes pair = random_pair(seed);
    for (const Numbers& numbers : kCpuNumbers) {
      expect_checkpoints_move(pair, {.precision = numbers.precision, .tolerance = pair.same_order ? 0.0 : numbers.tolerance},
                              [](const Recipe& recipe) { return SmallRun(recipe); });
    }
  }
}

class GpuPadding : public testing_support::GpuTest {};

TEST_F(GpuPadding, IsInvisible) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const Recipes pair = random_pair(seed);
    for (const Numbers& numbers : kGpuNumbers) {
      SCOPED_TRACE(concat(numbers.precision, " ", pair.text));
      SmallRun plain(with_precision(pair.plain, numbers), queue_, device_), changed(with_precision(pair.changed, numbers), queue_, device_);
      const std::vector<Batch> batches = draw(plain, 3);
      expect_same(see(changed, batches), see(plain, batches), numbers);
    }
  }
}

TEST_F(GpuPadding, ACheckpointGoesOnUnderOtherSwitches) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    for (const Numbers& numbers : kGpuNumbers) {
      expect_checkpoints_move(random_pair(seed), numbers, [&](const Recipe& recipe) { return SmallRun(recipe, queue_, device_); });
    }
  }
}

}  // namespace
}  // namespace tilewave
