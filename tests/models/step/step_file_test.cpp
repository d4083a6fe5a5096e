// One training step against PyTorch's, and what a batch file may not hold. The fixtures are PyTorch's results in double precision
// for weights and batches in float (tests/fixtures/make_fixtures.py); error of a tensor: ||a - b|| / max(||b||, 1e-3 x global norm).
#include "models/step/step_file.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <map>

#include "framework/io/safetensors_writer.h"
#include "models/exchange/initial_weights.h"
#include "models/step/batch_file.h"
#include "models/transformer/weight_files.h"
#include "tests/kernels/gpu.h"
#include "tests/shell.h"
#include "tests/test_environment.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;

fs::path fixture(const std::string& name) { return test_environment().data / "fixtures" / "step" / name; }

using Tensors = std::map<std::string, std::vector<double>>;

template <class T>
std::vector<double> elements(const SafetensorsReader& reader, const StoredTensor& tensor) {
  std::vector<T> values(static_cast<std::size_t>(tensor.bytes) / sizeof(T));
  reader.read(tensor, std::as_writable_bytes(std::span(values)));
  return {values.begin(), values.end()};
}

Tensors read_tensors(const fs::path& path) {
  const SafetensorsReader reader(path);
  Tensors tensors;
  for (const StoredTensor& tensor : reader.tensors()) {
    tensors[tensor.name] = tensor.type == StoredType::f64 ? elements<double>(reader, tensor) : elements<float>(reader, tensor);
  }
  return tensors;
}

Tensors with_prefix(const Tensors& tensors, const std::string& prefix) {
  Tensors result;
  for (const auto& [name, values] : tensors) {
    if (name.starts_with(prefix)) result[name.substr(prefix.size())] = values;
  }
  return result;
}

double norm(const std::vector<double>& values) {
  double sum = 0.0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

double norm(const Tensors& tensors) {
  double sum = 0.0;
  for (const auto& [name, values] : tensors) sum += norm(values) * norm(values);
  return std::sqrt(sum);
}

std::vector<double> difference(std::vector<double> a, const std::vector<double>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] -= b.at(i);
  return a;
}

// The name of the tensor that is furthest off, and its error.
std::pair<std::string, double> worst(const Tensors& ours, const Tensors& reference) {
  std::pair<std::string, double> result = {"", 0.0};
  const double global = norm(reference);
  for (const auto& [name, values] : reference) {
    EXPECT_GT(norm(values), 0.0) << name;
    const double error = norm(difference(ours.at(name), values)) / std::max(norm(values), 1e-3 * global);
    if (!(error <= result.second)) result = {name, error};
  }
  EXPECT_EQ(ours.size(), reference.size());
  return result;
}

// The bias of attention's keys adds the same to every score of a softmax: its gradient is zero by mathematics, and AdamW's first
// update of it the sign of a rounding error.
void drop_key_biases(Tensors& tensors) {
  for (auto& [name, values] : tensors) {
    const bool self = name.ends_with("self_attention.qkv.bias"), cross = name.ends_with("cross_attention.kv.bias");
    if (!self && !cross) continue;
    const auto d = static_cast<std::ptrdiff_t>(values.size()) / (self ? 3 : 2);
    const auto keys = values.begin() + (self ? d : 0);
    values.erase(keys, keys + d);
  }
}

struct Where {
  Queue queue = make_cpu_queue(2);
  DeviceInfo device = probe_cpu(2);
};

Tensors step_of(const std::string& name, const std::vector<std::string>& overrides, Update update, const Where& where = {}) {
  const TemporaryFolder folder;
  const Recipe asked = read_recipe(fixture(name) / "recipe.toml", overrides);
  const BatchFile file = read_batch_file(fixture(name) / "batch.safetensors", asked.model);
  const ResolvedRecipe resolved = resolve(recipe_of_step(asked, file));
  Context context(where.queue, where.device, context_options(resolved.recipe));
  TrainStep step(context, resolved);
  load_weights(fixture(name) / "weights.safetensors", step.model().parameters());
  const Batch batches[] = {pack(file, batch_shape(resolved))};
  const StepReport reports[] = {step.run(batches, 1, update)};
  write_safetensors(folder.path() / "step.safetensors", step_contents(step, reports, update));
  return read_tensors(folder.path() / "step.safetensors");
}

struct Variation {
  const char* name;
  std::vector<std::string> overrides;
  double loss_tolerance = 1e-6, tolerance = 1e-5;

  friend void PrintTo(const Variation& variation, std::ostream* stream) { *stream << variation.name; }
};

void expect_pytorchs_step(const std::string& name, const Variation& variation, const Where& where) {
  const Tensors expected = read_tensors(fixture(name) / "expected.safetensors");
  const Tensors ours = step_of(name, variation.overrides, Update::yes, where);
  const std::size_t parameters = with_prefix(expected, "weight/").size();
  ASSERT_EQ(ours.size(), expected.size() + 2 * parameters + 2);  // moments, learning_rate, gradient_norm
  EXPECT_NEAR(ours.at("loss").at(0) / expected.at("loss").at(0), 1.0, variation.loss_tolerance);

  const auto [gradient, gradient_error] = worst(with_prefix(ours, "gradient/"), with_prefix(expected, "gradient/"));
  EXPECT_LE(gradient_error, variation.tolerance) << gradient;

  Tensors weights = with_prefix(ours, "weight/"), expected_weights = with_prefix(expected, "weight/");
  drop_key_biases(weights);
  drop_key_biases(expected_weights);
  const auto [weight, weight_error] = worst(weights, expected_weights);
  EXPECT_LE(weight_error, variation.tolerance) << weight;

  // The check sees an update: the weights as they were are far off.
  Tensors before = read_tensors(fixture(name) / "weights.safetensors");
  drop_key_biases(before);
  for (const auto& [parameter, values] : expected_weights) {
    EXPECT_GT(norm(difference(before.at(parameter), values)) / norm(values), 1e-3) << parameter;
  }
}

class StepAgainstPyTorch : public testing::TestWithParam<std::tuple<std::string, Variation>> {};

TEST_P(StepAgainstPyTorch, LossGradientsAndUpdatedWeights) {
  const auto& [name, variation] = GetParam();
  expect_pytorchs_step(name, variation, {});
}

class GpuStepAgainstPyTorch : public testing_support::GpuTest {};

TEST_F(GpuStepAgainstPyTorch, LossGradientsAndUpdatedWeights) {
  const std::vector<std::string> padded = {"guidelines.pad_vocabulary_to=64", "guidelines.batch_multiple_of=32"};
  for (const char* name : {"encoder_decoder", "encoder_decoder_post", "decoder_only"}) {
    for (const Variation& variation :
         {Variation{.name = "fp32", .overrides = {}, .loss_tolerance = 1e-5, .tolerance = 1e-4},
          Variation{.name = "fp32 padded", .overrides = padded, .loss_tolerance = 1e-5, .tolerance = 1e-4},
          Variation{.name = "fp32 packed", .overrides = {"guidelines.row_pitch=packed"}, .loss_tolerance = 1e-5, .tolerance = 1e-4},
          Variation{.name = "fp64", .overrides = {"run.precision=fp64"}, .loss_tolerance = 1e-13, .tolerance = 1e-11}}) {
      SCOPED_TRACE(concat(name, " ", variation.name));
      expect_pytorchs_step(name, variation, {.queue = queue_, .device = device_});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, StepAgainstPyTorch,
    testing::Combine(
        testing::Values("encoder_decoder", "encoder_decoder_post", "decoder_only"),
        testing::Values(Variation{.name = "fp32", .overrides = {}},
                        Variation{.name = "fp32_packed_pitch", .overrides = {"guidelines.row_pitch=packed"}},
                        Variation{.name = "fp32_padded_vocabulary_and_ghost_rows",
                                  .overrides = {"guidelines.pad_vocabulary_to=64", "guidelines.batch_multiple_of=32"}},
                        Variation{.name = "fp64", .overrides = {"run.precision=fp64"}, .loss_tolerance = 1e-13, .tolerance = 1e-11})),
    [](const auto& test) { return std::get<0>(test.param) + "_" + std::get<1>(test.param).name; });

TEST(StepFile, ComparisonSeesAWrongLoss) {
  const Tensors expected = read_tensors(fixture("encoder_decoder") / "expected.safetensors");
  const Tensors ours = step_of("encoder_decoder", {"optimizer.label_smoothing=0.101"}, Update::no);
  EXPECT_GT(std::abs(ours.at("loss").at(0) / expected.at("loss").at(0) - 1.0), 1e-5);
  EXPECT_GT(worst(with_prefix(ours, "gradient/"), with_prefix(expected, "gradient/")).second, 1e-4);
}

TEST(StepFile, WithoutUpdateGradientsAreTheSameAndWeightsAbsent) {
  const Tensors with = step_of("decoder_only", {}, Update::yes), without = step_of("decoder_only", {}, Update::no);
  EXPECT_EQ(with_prefix(with, "gradient/"), with_prefix(without, "gradient/"));
  EXPECT_EQ(with.at("loss"), without.at("loss"));
  EXPECT_TRUE(with_prefix(without, "weight/").empty());
}

TEST(StepFile, LossHasThePrecisionsType) {
  for (const auto& [precision, type] : {std::pair{"run.precision=fp32", StoredType::f32}, {"run.precision=fp64", StoredType::f64}}) {
    const Recipe asked = read_recipe(fixture("decoder_only") / "recipe.toml", std::vector<std::string>{precision});
    const BatchFile file = read_batch_file(fixture("decoder_only") / "batch.safetensors", asked.model);
    const ResolvedRecipe resolved = resolve(recipe_of_step(asked, file));
    Context context(make_cpu_queue(1), probe_cpu(1), context_options(resolved.recipe));
    TrainStep step(context, resolved);
    const StepReport reports[] = {{.loss = 1.0}};
    const SafetensorsContents contents = step_contents(step, reports, Update::no);
    EXPECT_EQ(contents.tensors.front().name, "loss");
    EXPECT_EQ(contents.tensors.front().type, type);
    EXPECT_EQ(contents.tensors.front().shape, std::vector<std::int64_t>{1});
  }
}

TEST(StepFile, RowsAreTokensAndNoFewerThanTheLongestSequence) {
  const Recipe asked = read_recipe(fixture("encoder_decoder") / "recipe.toml");
  EXPECT_GT(asked.model.dropout, 0.0);
  BatchFile file = {.source_lengths = {2, 5}, .target_lengths = {3, 3}};
  const Recipe step = recipe_of_step(asked, file);
  EXPECT_EQ(step.batch.source_tokens, 7);
  EXPECT_EQ(step.batch.target_tokens, 6);
  EXPECT_EQ(step.batch.sequence, 5);
  EXPECT_EQ(step.model.dropout, 0.0);
  EXPECT_EQ(step.model.attention_dropout, 0.0);
  file = {.source_lengths = {2}, .target_lengths = {9}};
  EXPECT_EQ(recipe_of_step(asked, file).batch.source_tokens, 9);
  EXPECT_NO_THROW(resolve(recipe_of_step(asked, file)));
}

// Two updates at once are one after the other, with the weights and moments that the first one leaves.
TEST(StepFile, UpdatesGoOnFromAFile) {
  const TemporaryFolder folder;
  const fs::path first = folder.path() / "first.safetensors", both = folder.path() / "both.safetensors";
  const Recipe asked = read_recipe(fixture("decoder_only") / "recipe.toml");
  const BatchFile file = read_batch_file(fixture("decoder_only") / "batch.safetensors", asked.model);
  const ResolvedRecipe resolved = resolve(recipe_of_step(asked, file));
  const Batch batches[] = {pack(file, batch_shape(resolved))};
  const auto with_step = [&](const auto& take) {
    Context context(make_cpu_queue(2), probe_cpu(2), context_options(resolved.recipe));
    TrainStep step(context, resolved);
    load_weights(fixture("decoder_only") / "weights.safetensors", step.model().parameters());
    take(step);
  };
  with_step([&](TrainStep& step) {
    std::vector<StepReport> reports = {step.run(batches, 1)};
    write_safetensors(first, step_contents(step, reports, Update::yes));
    reports.push_back(step.run(batches, 2));
    write_safetensors(both, step_contents(step, reports, Update::yes));
  });
  const SafetensorsReader left(first);
  EXPECT_EQ(steps_done(left), 1);
  with_step([&](TrainStep& step) {
    EXPECT_EQ(load_initial_weights({.path = first}, step.model().parameters()).left_out, std::vector<std::string>());
    load_optimizer(first, step.model().parameters(), step.optimizer());
    const StepReport reports[] = {step.run(batches, steps_done(left) + 1)};
    write_safetensors(folder.path() / "second.safetensors", step_contents(step, reports, Update::yes));
  });
  const Tensors at_once = read_tensors(both), one_by_one = read_tensors(folder.path() / "second.safetensors");
  for (const auto& [name, values] : at_once) {
    if (name.find('/') != std::string::npos) {
      EXPECT_EQ(values, one_by_one.at(name)) << name;
    }
  }
  EXPECT_EQ(at_once.at("loss").size(), 2U);
  EXPECT_EQ(at_once.at("loss").at(0), read_tensors(first).at("loss").at(0));
  EXPECT_EQ(at_once.at("loss").at(1), one_by_one.at("loss").at(0));
  EXPECT_NE(at_once.at("loss").at(0), at_once.at("loss").at(1));
}

TEST(StepFile, LogitsSayTheLoss) {
  const TemporaryFolder folder;
  const Recipe asked = read_recipe(fixture("encoder_decoder") / "recipe.toml",
                                   std::vector<std::string>{"optimizer.label_smoothing=0", "run.precision=fp64"});
  const BatchFile file = read_batch_file(fixture("encoder_decoder") / "batch.safetensors", asked.model);
  const ResolvedRecipe resolved = resolve(recipe_of_step(asked, file));
  Context context(make_cpu_queue(2), probe_cpu(2), context_options(resolved.recipe));
  TrainStep step(context, resolved);
  load_weights(fixture("encoder_decoder") / "weights.safetensors", step.model().parameters());
  SafetensorsContents contents;
  add_logits(contents, step, "logits", file);
  const std::int64_t vocabulary = asked.model.vocabulary, longest = file.target_in.cols;
  EXPECT_EQ(contents.tensors.front().shape, (std::vector<std::int64_t>{file.target_in.rows, longest, vocabulary}));
  write_safetensors(folder.path() / "logits.safetensors", contents);
  const std::vector<double> logits = read_tensors(folder.path() / "logits.safetensors").at("logits");
  double sum = 0.0;
  int count = 0;
  for (std::int64_t row = 0; row < file.target_in.rows * longest; ++row) {
    const auto first = logits.begin() + row * vocabulary;
    const std::int32_t label = file.target_out.values[static_cast<std::size_t>(row)];
    if (row % longest >= file.target_lengths[static_cast<std::size_t>(row / longest)]) {
      EXPECT_TRUE(std::all_of(first, first + vocabulary, [](double logit) { return logit == 0.0; })) << row;
    } else if (label >= 0) {
      double exponentials = 0.0;
      for (std::int64_t v = 0; v < vocabulary; ++v) exponentials += std::exp(first[v]);
      sum += std::log(exponentials) - first[label];
      ++count;
    }
  }
  const Batch batches[] = {pack(file, batch_shape(resolved))};
  EXPECT_NEAR(sum / count, step.run(batches, 1, Update::no).loss, 1e-12);
}

// What a run's batches are as a file is read as the same sequences.
TEST(BatchFile, PackedBatchesComeBack) {
  const TemporaryFolder folder;
  for (const bool encoder : {false, true}) {
    const BatchShape shape{.source_rows = encoder ? 12 : 0, .target_rows = 11, .sequence = 6};
    ModelConfig model{.architecture = encoder ? Architecture::encoder_decoder : Architecture::decoder_only, .vocabulary = 40};
    std::vector<Batch> batches;
    for (std::int32_t b = 0; b < 3; ++b) {
      Packer packer(shape);
      const std::int32_t ids[] = {7 + b, 8, 9, 10, 11, 12}, labels[] = {8, -1, 10, 11, 12, 13};
      for (const std::size_t length : {3U, 6U, 1U + static_cast<unsigned>(b) % 2U}) {
        const std::size_t source = encoder ? length % 5 + 1 : 0;
        ASSERT_TRUE(packer.add({.source = std::span(ids).first(source),
                                .target_in = std::span(ids).first(length),
                                .target_out = std::span(labels).first(length)}));
      }
      batches.push_back(std::move(packer).take());
    }
    write_safetensors(folder.path() / "batches.safetensors", batch_contents(batches));
    const StoredBatches files = read_batch_files(folder.path() / "batches.safetensors", model);
    EXPECT_EQ(files.names, BatchNames::numbered);
    ASSERT_EQ(files.batches.size(), batches.size());
    for (std::size_t i = 0; i < batches.size(); ++i) {
      Batch back = pack(files.batches[i], shape);
      std::ranges::replace(back.target_out, kIgnoredLabel, kPaddingId);
      EXPECT_EQ(back, batches[i]) << i;
      EXPECT_EQ(files.batches[i].target_out.values.at(1), kIgnoredLabel);
    }
  }
}

TEST(BatchFile, NumbersHaveNoGaps) {
  const TemporaryFolder folder;
  const ModelConfig model{.architecture = Architecture::decoder_only, .vocabulary = 40};
  Packer packer({.target_rows = 2, .sequence = 2});
  const std::int32_t ids[] = {1, 2};
  ASSERT_TRUE(packer.add({.source = {}, .target_in = ids, .target_out = ids}));
  const Batch batch = std::move(packer).take();
  const auto refusal = [&](SafetensorsContents contents) -> std::string {
    write_safetensors(folder.path() / "b.safetensors", contents);
    try {
      read_batch_files(folder.path() / "b.safetensors", model);
      return "none";
    } catch (const InputError& error) {
      return error.what();
    }
  };
  EXPECT_EQ(refusal(batch_contents({batch, batch})), "none");
  SafetensorsContents gap = batch_contents({batch, batch});
  for (TensorSource& tensor : gap.tensors) {
    if (tensor.name.starts_with("batch/1/")) tensor.name.replace(6, 1, "2");
  }
  EXPECT_NE(refusal(gap).find("numbered from 0 on without gaps"), std::string::npos) << refusal(gap);
  SafetensorsContents lone = batch_contents({batch});
  lone.tensors.front().name = "target_in";
  EXPECT_NE(refusal(lone).find("is no part of a batch"), std::string::npos) << refusal(lone);
  SafetensorsContents zeros = batch_contents({batch});
  for (TensorSource& tensor : zeros.tensors) tensor.name.replace(6, 1, "00");
  EXPECT_NE(refusal(zeros).find("is no part of a batch"), std::string::npos) << refusal(zeros);
  SafetensorsContents lacking = batch_contents({batch, batch});
  std::erase_if(lacking.tensors, [](const TensorSource& tensor) { return tensor.name == "batch/1/target_lengths"; });
  EXPECT_NE(refusal(lacking).find("batch/1/target_lengths"), std::string::npos) << refusal(lacking);
}

// A batch of three sequences that a test spoils.
struct Ids {
  std::vector<std::int64_t> shape;
  std::vector<std::int32_t> values;
  StoredType type = StoredType::i32;
};

class BatchFiles : public testing::Test {
 protected:
  void expect_refusal(const std::string& part, Architecture architecture = Architecture::encoder_decoder) {
    try {
      read(architecture);
      ADD_FAILURE() << "accepted; expected: " << part;
    } catch (const InputError& error) {
      const std::string what = error.what();
      EXPECT_NE(what.find(part), std::string::npos) << what;
      EXPECT_NE(what.find("batch.safetensors"), std::string::npos) << what;
      EXPECT_TRUE(what.ends_with('.')) << what;
    }
  }

  BatchFile read(Architecture architecture = Architecture::encoder_decoder) {
    SafetensorsContents contents;
    for (const auto& [name, ids] : batch_) {
      contents.tensors.push_back({.name = name, .type = ids.type, .shape = ids.shape, .stream = [&ids = ids](const ByteSink& sink) {
                                    sink(std::as_bytes(std::span(ids.values)));
                                  }});
    }
    const fs::path path = folder_.path() / "batch.safetensors";
    write_safetensors(path, contents);
    ModelConfig model;
    model.architecture = architecture;
    model.vocabulary = 10;
    model.max_positions = 4;
    return read_batch_file(path, model);
  }

  TemporaryFolder folder_;
  std::map<std::string, Ids> batch_ = {{"source", {{3, 2}, {1, 2, 3, 99, 5, 6}}},
                                       {"source_lengths", {{3, 1}, {2, 1, 2}}},
                                       {"target_in", {{3, 4}, {1, 2, 3, 4, 5, -7, 99, 99, 6, 7, 8, 99}}},
                                       {"target_out", {{3, 4}, {2, 3, 4, -1, 6, 7, 8, 9, -100, 8, 9, 99}}},
                                       {"target_lengths", {{3}, {4, 1, 3}}}};
};

TEST_F(BatchFiles, WhatLiesBehindALengthIsNotRead) {
  const BatchFile file = read();
  const Batch batch = pack(file, {.source_rows = 6, .target_rows = 9, .sequence = 4});
  EXPECT_EQ(batch.source_ids, (std::vector<std::int32_t>{1, 2, 3, 5, 6, kPaddingId}));
  EXPECT_EQ(batch.target_in, (std::vector<std::int32_t>{1, 2, 3, 4, 5, 6, 7, 8, kPaddingId}));
  EXPECT_EQ(batch.target_positions, (std::vector<std::int32_t>{0, 1, 2, 3, 0, 0, 1, 2, 0}));
  EXPECT_EQ(batch.real_tokens, 6);  // two labels are negative
  EXPECT_THROW(pack(file, {.source_rows = 6, .target_rows = 7, .sequence = 4}), Error);
}

TEST_F(BatchFiles, MissingTensor) {
  for (const std::string name : {"source", "source_lengths", "target_in", "target_out", "target_lengths"}) {
    const auto kept = batch_.extract(name);
    expect_refusal("\"" + name + "\"");
    batch_[name] = kept.mapped();
  }
}

TEST_F(BatchFiles, SurplusTensor) {
  expect_refusal("\"source\" is no part of a batch for model.architecture = \"decoder_only\"", Architecture::decoder_only);
  batch_["extra"] = {{1}, {0}};
  expect_refusal("\"extra\"");
}

TEST_F(BatchFiles, WrongTypes) {
  for (auto& [name, ids] : batch_) {
    ids.type = StoredType::f32;
    expect_refusal("\"" + name + "\" is F32");
    ids.type = StoredType::i32;
  }
}

TEST_F(BatchFiles, IdsOutsideTheVocabulary) {
  batch_["source"].values[4] = 10;
  expect_refusal("\"source\" holds the id 10 at sequence 2, position 0");
  batch_["source"].values[4] = -1;
  expect_refusal("\"source\" holds the id -1 at sequence 2, position 0");
  batch_["source"].values[4] = 5;
  batch_["target_in"].values[3] = -2147483647 - 1;
  expect_refusal("\"target_in\" holds the id -2147483648 at sequence 0, position 3");
  batch_["target_in"].values[3] = 0;
  batch_["target_out"].values[10] = 10;
  expect_refusal("\"target_out\" holds the id 10 at sequence 2, position 2");
}

TEST_F(BatchFiles, LengthsThatCannotBe) {
  for (const std::int32_t length : {0, -1, 5, 2147483647}) {
    batch_["target_lengths"].values[1] = length;
    expect_refusal("\"target_lengths\" says that sequence 1 has " + std::to_string(length) + " tokens");
  }
  batch_["target_lengths"].values[1] = 1;
  batch_["source_lengths"].values[2] = 3;
  expect_refusal("\"source_lengths\" says that sequence 2 has 3 tokens");
}

TEST_F(BatchFiles, NumbersOfSequencesThatDiffer) {
  batch_["target_out"] = {{2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}};
  expect_refusal("[2, 4], but \"target_in\" has [3, 4]");
  batch_["target_out"] = {{3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9}};
  expect_refusal("[3, 3], but \"target_in\" has [3, 4]");
  batch_["target_out"] = {{3, 4}, std::vector<std::int32_t>(12, 1)};
  batch_["source"] = {{2, 2}, {1, 2, 3, 4}};
  expect_refusal("[2, 2], but \"target_in\" has [3, 4]");
  batch_["source"] = {{3, 2}, {1, 2, 3, 4, 5, 6}};
  batch_["source_lengths"] = {{2}, {1, 1}};
  expect_refusal("\"source_lengths\" is I32 [2], but \"source\" has 3 sequences");
  batch_["source_lengths"] = {{1, 3}, {1, 1, 1}};
  expect_refusal("\"source_lengths\" is I32 [1, 3]");
}

TEST_F(BatchFiles, NothingToLearnFrom) {
  batch_["target_out"].values.assign(12, -100);
  expect_refusal("no token counts");
  for (const char* name : {"target_in", "target_out"}) batch_[name] = {{0, 4}, {}};
  expect_refusal("needs a sequence with a token");
  for (const char* name : {"target_in", "target_out"}) batch_[name] = {{3, 0}, {}};
  expect_refusal("needs a sequence with a token");
}

TEST_F(BatchFiles, LongerThanThePositions) {
  batch_["source"] = {{3, 5}, std::vector<std::int32_t>(15, 1)};
  batch_["source_lengths"].values = {1, 5, 1};
  expect_refusal("sequence 1 has 5 tokens, more than model.max_positions = 4");
}

}  // namespace
}  // namespace tilewave
