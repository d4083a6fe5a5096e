// Padding is invisible, as properties over random vocabularies, rows and switches: loss, gradients, gradient norm, random streams
// (dropout is on), updated weights and samples are those of the plain recipe, padded rows stay zero, and a checkpoint goes on under
// other switches. On a CPU what changes no order of sums changes no bit.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "framework/io/safetensors_writer.h"
#include "framework/random.h"
#include "models/decode.h"
#include "models/same_loss.h"
#include "models/weight_files.h"
#include "tests/kernels/gpu.h"
#include "tests/models/small_runs.h"
#include "tests/shell.h"

namespace tilewave {
namespace {

// A recipe and the same with its switches thrown.
struct Pair {
  std::vector<std::string> plain, changed;
  bool same_order = false;  // of every sum
  std::string text;
};

Pair random_pair(std::uint64_t seed) {
  Random random(random_key(7, seed));
  const auto below = [&](std::uint32_t most) { return static_cast<std::int64_t>(random.below(most)); };
  const auto one_of = [&](const std::vector<std::int64_t>& values) {
    return values[random.below(static_cast<std::uint32_t>(values.size()))];
  };
  const std::int64_t vocabulary = 20 + below(200), source = 15 + below(60), target = 15 + below(60);
  const std::int64_t pad = one_of({1, 2, 8, 64, 100}), more_source = one_of({0, 0, 1, 8, 13}), more_target = one_of({0, 0, 1, 8, 13});
  const bool packed = below(2) == 1, feature_major = below(3) == 0, decoder_only = below(3) == 0;
  Pair pair;
  if (decoder_only) pair.plain = kDecoderOnly;
  const auto rows = [&](std::int64_t more_s, std::int64_t more_t) {
    return std::vector<std::string>{sentence("batch.source_tokens=", decoder_only ? 0 : source + more_s),
                                    sentence("batch.target_tokens=", target + more_t)};
  };
  pair.plain.push_back(sentence("model.vocabulary=", vocabulary));
  pair.changed = pair.plain;
  for (const std::string& key : rows(0, 0)) pair.plain.push_back(key);
  for (const std::string& key : rows(more_source, more_target)) pair.changed.push_back(key);
  pair.changed.push_back(sentence("guidelines.pad_vocabulary_to=", pad));
  if (packed) pair.changed.push_back("guidelines.row_pitch=packed");
  if (feature_major) pair.changed.push_back("guidelines.ffn_hidden_layout=feature_major");
  pair.same_order = !feature_major && more_target == 0 && (decoder_only || more_source == 0);
  for (const std::string& key : pair.changed) pair.text += key + " ";
  return pair;
}

struct Seen {
  std::vector<double> losses, gradient_norms, gradients, weights;
  std::vector<std::vector<std::int32_t>> samples;
};

void expect_zero_padding(SmallRun& run) {
  for (const Parameter& parameter : run.step.model().parameters().all()) {
    const std::int64_t logical = parameter.shape().rows, stored = parameter.master.rows();
    if (stored == logical) continue;
    const std::vector<double> padding = read_elements(run.context, parameter.master.slice_rows(logical, stored - logical));
    EXPECT_TRUE(std::all_of(padding.begin(), padding.end(), [](double value) { return value == 0.0; })) << parameter.spec.name;
  }
}

std::vector<std::vector<std::int32_t>> samples_of(SmallRun& run) {
  const std::vector<std::vector<std::int32_t>> prompts = {{9, 5, 12}, {4, 4, 17, 8}};
  if (run.resolved.shapes.source_rows > 0) return translate(run.step.model(), prompts);
  std::vector<std::vector<std::int32_t>> samples(prompts.size());
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    generate(run.step.model(), prompts[i], {.tokens = 8, .seed = 5}, [&](std::int32_t id) { samples[i].push_back(id); });
  }
  return samples;
}

Seen see(SmallRun& run, const std::vector<Batch>& batches) {
  Seen seen;
  const auto batch = [&](std::size_t i) { return std::vector<Batch>{repacked(batches[i], batch_shape(run.resolved))}; };
  seen.losses.push_back(run.step.run(batch(0), 1, Update::no).loss);
  for (const Parameter& parameter : run.step.model().parameters().all()) {
    const std::vector<double> own = read_elements(run.context, parameter.logical_gradient());
    seen.gradients.insert(seen.gradients.end(), own.begin(), own.end());
  }
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const StepReport report = run.step.run(batch(i), static_cast<std::int64_t>(i) + 1);
    seen.losses.push_back(report.loss);
    seen.gradient_norms.push_back(report.gradient_norm);
  }
  seen.weights = run.weights();
  expect_zero_padding(run);
  seen.samples = samples_of(run);
  for (const std::vector<std::int32_t>& sample : seen.samples) {
    for (const std::int32_t id : sample) EXPECT_LT(id, run.resolved.shapes.vocabulary);
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

void expect_same(const Seen& a, const Seen& b, double tolerance) {
  expect_near(a.losses, b.losses, tolerance, "losses");
  expect_near(a.gradient_norms, b.gradient_norms, tolerance, "gradient norms");
  expect_near(a.gradients, b.gradients, tolerance, "gradients");
  expect_near(a.weights, b.weights, tolerance, "weights");
}

std::vector<Batch> draw(SmallRun& run, int count) {
  std::vector<Batch> batches;
  for (int i = 0; i < count; ++i) batches.push_back(*run.stream.next());
  return batches;
}

TEST(Padding, IsInvisible) {
  std::int64_t exact = 0;
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    const Pair pair = random_pair(seed);
    SCOPED_TRACE(pair.text);
    for (const char* precision : {"run.precision=fp32", "run.precision=fp64"}) {
      const bool double_precision = std::string_view(precision).ends_with("64");
      const auto recipe = [&](std::vector<std::string> overrides) {
        overrides.emplace_back(precision);
        return small_recipe(overrides);
      };
      SmallRun plain(recipe(pair.plain)), changed(recipe(pair.changed));
      const std::vector<Batch> batches = draw(plain, 3);
      const Seen expected = see(plain, batches), seen = see(changed, batches);
      if (double_precision) {
        expect_same(seen, expected, 1e-10);
        EXPECT_EQ(seen.samples, expected.samples);
      } else if (pair.same_order) {
        ++exact;
        EXPECT_EQ(seen.losses, expected.losses);
        EXPECT_EQ(seen.gradient_norms, expected.gradient_norms);
        EXPECT_EQ(seen.gradients, expected.gradients);
        EXPECT_EQ(seen.weights, expected.weights);
        EXPECT_EQ(seen.samples, expected.samples);
      }
    }
  }
  EXPECT_GT(exact, 2);
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

TEST(Padding, ACheckpointGoesOnUnderOtherSwitches) {
  const TemporaryFolder folder;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const Pair pair = random_pair(seed);
    SCOPED_TRACE(pair.text);
    const auto recipe = [](std::vector<std::string> overrides) {
      overrides.emplace_back("run.precision=fp64");
      return small_recipe(overrides);
    };
    SmallRun plain(recipe(pair.plain)), changed(recipe(pair.changed));
    const std::vector<Batch> batches = draw(plain, 4);
    see(plain, {batches.begin(), batches.end() - 1});
    Parameters& parameters = plain.step.model().parameters();
    const std::string name = std::to_string(seed);
    write_safetensors(folder.path() / (name + ".model"), weight_contents(parameters));
    write_safetensors(folder.path() / (name + ".moments"), optimizer_contents(parameters, plain.step.optimizer()));
    load_weights(folder.path() / (name + ".model"), changed.step.model().parameters());
    load_optimizer(folder.path() / (name + ".moments"), changed.step.model().parameters(), changed.step.optimizer());
    const StepReport expected = plain.step.run(std::vector<Batch>{batches.back()}, 4);
    const StepReport report = changed.step.run(std::vector<Batch>{repacked(batches.back(), batch_shape(changed.resolved))}, 4);
    EXPECT_NEAR(report.loss, expected.loss, 1e-10 * expected.loss);
    EXPECT_NEAR(report.gradient_norm, expected.gradient_norm, 1e-10 * expected.gradient_norm);
    expect_near(changed.weights(), plain.weights(), 1e-10, "weights");
    expect_zero_padding(changed);
  }
}

class GpuPadding : public testing_support::GpuTest {};

TEST_F(GpuPadding, IsInvisible) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const Pair pair = random_pair(seed);
    for (const auto& [precision, tolerance] : {std::pair{"fp64", 1e-10}, {"fp32", 1e-3}, {"bf16", 5e-2}}) {
      SCOPED_TRACE(sentence(precision, " ", pair.text));
      const auto recipe = [&, name = precision](std::vector<std::string> overrides) {
        overrides.push_back(sentence("run.precision=", name));
        return small_recipe(overrides);
      };
      SmallRun plain(recipe(pair.plain), queue_, device_), changed(recipe(pair.changed), queue_, device_);
      const std::vector<Batch> batches = draw(plain, 3);
      const Seen expected = see(plain, batches), seen = see(changed, batches);
      expect_same(seen, expected, tolerance);
      if (tolerance < 1e-6) {
        EXPECT_EQ(seen.samples, expected.samples);
      }
    }
  }
}

}  // namespace
}  // namespace tilewave
