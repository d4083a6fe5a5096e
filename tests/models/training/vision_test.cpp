// Runs that learn to see: their validation accuracy is that of the pictures one by one, they go on bit for bit from a checkpoint, they read
// IDX files, and what needs tokens is refused in one sentence.
#include <algorithm>
#include <csignal>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "framework/data/drawn_digits.h"
#include "models/decoding/trained_model.h"
#include "models/training/evaluation.h"
#include "models/training/trainer.h"
#include "tests/memory_folder.h"
#include "tests/models/training/small_runs.h"
#include "tests/shell.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;

Recipe seeing_recipe(const std::vector<std::string>& overrides = {}) {
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

// `count` drawn digits as IDX files, pictures and labels.
void write_idx(const fs::path& folder, const std::string& name, std::int64_t count, PicturePart part) {
  const PictureSet set = drawn_digits({.count = count, .shape = {.height = 20, .width = 20, .channels = 1}, .seed = 5, .part = part});
  const auto big_endian = [](std::int64_t number) {
    std::string bytes;
    for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(number >> shift & 255);
    return bytes;
  };
  std::string pictures = std::string("\0\0\x08\x03", 4) + big_endian(count) + big_endian(20) + big_endian(20);
  std::string labels = std::string("\0\0\x08\x01", 4) + big_endian(count);
  std::vector<std::uint8_t> pixels(400);
  for (std::int64_t i = 0; i < count; ++i) {
    labels += static_cast<char>(set.read(i, pixels));
    pictures.append(pixels.begin(), pixels.end());
  }
  write_text(folder / (name + "-images"), pictures);
  write_text(folder / (name + "-labels"), labels);
}

template <class Function>
std::string refusal_by(Function&& function) {
  try {
    function();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

class Seeing : public testing::Test {
 protected:
  fs::path folder(const std::string& name) const { return temporary / name; }

  TrainingResult trained(const Recipe& recipe, const std::string& name, std::int64_t stop_after = 0,
                         RunStart start = RunStart::fresh) const {
    std::int64_t done = 0;
    return train({.recipe = recipe,
                  .run = {.recipe = "seeing", .folder = folder(name), .start = start},
                  .queue = make_cpu_queue(2),
                  .device = probe_cpu(2),
                  .stop_signal = [&] { return stop_after > 0 && done >= stop_after ? SIGTERM : 0; }},
                 {.stepped = [&](const TrainingProgress& progress) { done = progress.step.step; }});
  }
  std::vector<std::string> of_files() const {
    const auto named = [&](const char* key, const char* file) { return std::string("data.") + key + "='" + folder(file).string() + "'"; };
    return {named("pictures", "train-images"), named("labels", "train-labels")};
  }

  MemoryFolder temporary;
};

TEST_F(Seeing, TheAccuracyIsThatOfThePicturesOneByOne) {
  const Recipe recipe = seeing_recipe({"batch.pictures=96"});  // which 2,000 is no multiple of
  SmallRun run(recipe);
  run.losses(3);
  const ValidationLoss validated = run.step.validate(run.corpus.validation(batch_shape(run.resolved)), [] { return false; }).value();
  BatchStream stream = run.corpus.validation(batch_shape(run.resolved));
  std::int64_t right = 0, pictures = 0;
  while (const std::optional<Batch> batch = stream.next()) {
    const std::vector<double> logits = read_elements(run.context, run.step.logits(*batch));
    for (std::size_t i = 0; i < batch->target_out.size(); ++i) {
      if (batch->target_out[i] < 0) continue;
      ++pictures;
      const double own = logits[10 * i + static_cast<std::size_t>(batch->target_out[i])];
      right += std::count_if(logits.begin() + static_cast<std::ptrdiff_t>(10 * i),
                             logits.begin() + static_cast<std::ptrdiff_t>(10 * i + 10), [&](double logit) { return logit > own; }) == 0;
    }
  }
  EXPECT_EQ(pictures, 2000);
  EXPECT_EQ(validated.target_tokens, pictures);
  EXPECT_EQ(validated.right, right);
  EXPECT_GT(right, 0);
}

TEST_F(Seeing, ARunSaysItsAccuracyAndGoesOnBitForBit) {
  const Recipe recipe = seeing_recipe();
  const TrainingResult whole = trained(recipe, "whole");
  EXPECT_EQ(trained(recipe, "cut", 4).signal, SIGTERM);
  const TrainingResult cut = trained(recipe, "cut", 0, RunStart::resume);
  EXPECT_EQ(cut.steps, 6);
  for (const char* file : {"checkpoints/step-00000006/weights.safetensors", "checkpoints/step-00000006/optimizer.safetensors"}) {
    EXPECT_EQ(file_text(folder("whole") / file), file_text(folder("cut") / file)) << file;
  }
  EXPECT_EQ(whole.loss, cut.loss);
  EXPECT_EQ(whole.validation.right, cut.validation.right);
  const nlohmann::json summary = nlohmann::json::parse(file_text(folder("whole/summary.json")));
  EXPECT_EQ(summary.at("validation_accuracy"), whole.validation.accuracy().value());
  EXPECT_EQ(summary.at("validation_pictures"), 2000);
  EXPECT_FALSE(summary.contains("exact_match"));
  std::size_t validated = 0;
  std::istringstream lines(file_text(folder("whole/metrics.jsonl")));
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json step = nlohmann::json::parse(line);
    EXPECT_EQ(step.at("target_tokens"), 48);
    validated += step.contains("validation_accuracy") ? 1 : 0;
  }
  EXPECT_EQ(validated, 1U);
  const Evaluation evaluated =
      evaluate_run({.run = folder("whole"), .data = {}, .target = {}, .weights = {}, .queue = make_cpu_queue(2), .device = probe_cpu(2)});
  EXPECT_EQ(evaluated.loss.right, whole.validation.right);
  EXPECT_EQ(evaluated.loss.loss, whole.validation.loss);
}

TEST_F(Seeing, ReadsIdxFiles) {
  write_idx(temporary.path(), "train", 300, PicturePart::training);
  write_idx(temporary.path(), "other", 50, PicturePart::held_out);
  std::vector<std::string> overrides = of_files();
  overrides.emplace_back("run.steps=2");
  EXPECT_EQ(trained(seeing_recipe(overrides), "held-out").validation.target_tokens, 30);
  overrides.push_back("data.validation_pictures='" + folder("other-images").string() + "'");
  overrides.push_back("data.validation_labels='" + folder("other-labels").string() + "'");
  EXPECT_EQ(trained(seeing_recipe(overrides), "own").validation.target_tokens, 50);
}

TEST_F(Seeing, RefusesFilesThatDoNotFit) {
  write_idx(temporary.path(), "train", 60, PicturePart::training);
  const auto refused = [&](const std::vector<std::string>& more) {
    std::vector<std::string> overrides = of_files();
    overrides.insert(overrides.end(), more.begin(), more.end());
    return refusal_by([&] { trained(seeing_recipe(overrides), "run"); });
  };
  EXPECT_NE(refused({"data.picture_size=25"}).find("set data.picture_size and data.channels to what the file has"), std::string::npos);
  EXPECT_NE(refused({"model.classes=9"}).find("train-labels: picture 9 has the label 9"), std::string::npos);
  EXPECT_NE(refused({"data.labels=''"}).find("data.labels is missing"), std::string::npos);
  EXPECT_NE(refused({"data.validation_labels='" + folder("train-labels").string() + "'"}).find("data.validation_pictures is missing"),
            std::string::npos);
  EXPECT_EQ(refusal_by([&] { trained(seeing_recipe({"model.classes=9"}), "run"); }),
            "model.classes = 9, and drawn digits are of 10; set model.classes to that, or name other pictures with data.pictures.");
  EXPECT_FALSE(fs::exists(folder("run")));
}

TEST_F(Seeing, RefusesWhatNeedsTokens) {
  trained(seeing_recipe({"run.steps=1"}), "run");
  EXPECT_NE(refusal_by([&] {
              open_trained_model(folder("run"), make_cpu_queue(2), probe_cpu(2), {});
            }).find("needs a model of tokens, and model.architecture = \"encoder_classifier\" sees pictures."),
            std::string::npos);
  const Recipe recipe = seeing_recipe();
  Context context(make_cpu_queue(2), probe_cpu(2), context_options(recipe));
  TrainStep step(context, resolve(recipe));
  EXPECT_NE(refusal_by([&] { (void)step.model(); }), "no error");
}

struct Refused {
  std::vector<std::string> overrides;
  std::string sentence;
};

TEST(SeeingRecipe, KeysThatDoNotGoTogetherAreRefused) {
  const std::vector<Refused> all = {
      {{"model.vocabulary=64"}, "model.vocabulary = 64 would not be read: model.architecture is \"encoder_classifier\"; leave it out."},
      {{"batch.source_tokens=0"}, "batch.source_tokens = 0 would not be read: model.architecture is \"encoder_classifier\"; leave it out."},
      {{"guidelines.pad_vocabulary_to=8"},
       "guidelines.pad_vocabulary_to = 8 would not be read: model.architecture is \"encoder_classifier\"; leave it out."},
      {{"model.positions=rope"},
       "model.positions = \"rope\" numbers tokens, and an encoder_classifier learns a row for each place of a picture; set it to "
       "\"learned\"."},
      {{"model.patch=3"}, "model.patch = 3 does not divide data.picture_size = 20; patches fill a picture. Set a divisor."},
      {{"data.channels=2"}, "data.channels = 2 are no colors; set 1, shades of grey, or 3, red, green and blue."},
      {{"batch.pictures=1048577"},
       "batch.pictures = 1048577 of 20 x 20 pixels are too many for one pass; lower it, and raise batch.accumulate."},
      {{"run.ranks=2"}, "run.ranks = 2 shares out rows of tokens, and an encoder_classifier trains on one device; set run.ranks to 1."},
      {{"model.encoder_layers=0"}, "model.encoder_layers = 0 in an encoder_classifier model; set it to at least 1."},
      {{"data.source=a.txt"}, "data.source = \"a.txt\" would not be read: data.kind is \"pictures\"."},
      {{"data.kind=text"},
       "data.kind = \"text\" and model.architecture = \"encoder_classifier\" do not go together: \"pictures\" are what an "
       "\"encoder_classifier\" sees; set both or neither."}};
  for (const Refused& one : all) EXPECT_EQ(refusal_by([&] { seeing_recipe(one.overrides); }), one.sentence);
  EXPECT_EQ(refusal_by([] { small_recipe({"model.classes=11"}); }),
            "model.classes = 11 would not be read: model.architecture is \"encoder_decoder\"; leave it out.");
  EXPECT_EQ(refusal_by([] { small_recipe({"data.pictures=a"}); }), "data.pictures = \"a\" would not be read: data.kind is \"synthetic\".");
  EXPECT_NE(refusal_by([] { small_recipe({"data.kind=pictures"}); }).find("do not go together"), std::string::npos);
}

TEST(SeeingRecipe, RowsAreItsPatches) {
  const ResolvedRecipe resolved = resolve(seeing_recipe());
  EXPECT_EQ(resolved.shapes, (StepShapes{.vocabulary = 10, .vocabulary_padded = 10, .source_rows = 24 * 16, .target_rows = 24}));
  EXPECT_EQ(text_of(resolved.segments, batch_shape(resolved)), "attention is counted for pictures of 16 patches each.");
  EXPECT_EQ(resolved.segments.source, (SegmentSums{.queries = 24 * 16, .pairs = 24 * 16 * 16}));
}

}  // namespace
}  // namespace tilewave
