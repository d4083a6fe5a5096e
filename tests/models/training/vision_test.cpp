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
#include "models/training/classification.h"
#include "models/training/evaluation.h"
#include "models/training/trainer.h"
#include "tests/models/training/picture_runs.h"
#include "tests/models/training/small_runs.h"
#include "tests/shell.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;

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

class Seeing : public PictureRuns {
 protected:
  std::vector<std::string> of_files() const {
    const auto named = [&](const char* key, const char* file) { return std::string("data.") + key + "='" + folder(file).string() + "'"; };
    return {named("pictures", "train-images"), named("labels", "train-labels")};
  }
};

TEST_F(Seeing, TheAccuracyIsThatOfThePicturesOneByOne) {
  const Recipe recipe = small_classifier({"batch.pictures=96"});  // which 2,000 is no multiple of
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

class SeeingWith : public Seeing, public testing::WithParamInterface<std::vector<std::string>> {};
INSTANTIATE_TEST_SUITE_P(Stems, SeeingWith,
                         testing::Values(std::vector<std::string>{}, std::vector<std::string>{"model.stem=convolution", "model.patch=4"}));

// Running statistics included, with which it validates.
TEST_P(SeeingWith, ARunSaysItsAccuracyAndGoesOnBitForBit) {
  const Recipe recipe = small_classifier(GetParam());
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
  EXPECT_EQ(trained(small_classifier(overrides), "held-out").validation.target_tokens, 30);
  overrides.push_back("data.validation_pictures='" + folder("other-images").string() + "'");
  overrides.push_back("data.validation_labels='" + folder("other-labels").string() + "'");
  EXPECT_EQ(trained(small_classifier(overrides), "own").validation.target_tokens, 50);
}

TEST_F(Seeing, RefusesFilesThatDoNotFit) {
  write_idx(temporary.path(), "train", 60, PicturePart::training);
  const auto refused = [&](const std::vector<std::string>& more) {
    std::vector<std::string> overrides = of_files();
    overrides.insert(overrides.end(), more.begin(), more.end());
    return refusal_by([&] { trained(small_classifier(overrides), "run"); });
  };
  EXPECT_NE(refused({"data.picture_size=25"}).find("set data.picture_size and data.channels to what the file has"), std::string::npos);
  EXPECT_NE(refused({"model.classes=9"}).find("train-labels: picture 9 has the label 9"), std::string::npos);
  EXPECT_NE(refused({"data.labels=''"}).find("data.labels is missing"), std::string::npos);
  EXPECT_NE(refused({"data.validation_labels='" + folder("train-labels").string() + "'"}).find("data.validation_pictures is missing"),
            std::string::npos);
  EXPECT_EQ(refusal_by([&] { trained(small_classifier({"model.classes=9"}), "run"); }),
            "model.classes = 9, and drawn digits are of 10; set model.classes to that, or name other pictures with data.pictures.");
  EXPECT_FALSE(fs::exists(folder("run")));
}

// What is said of each picture of the files that a run validated on is what its accuracy counted.
TEST_F(Seeing, ClassifiesAsItWasValidated) {
  write_idx(temporary.path(), "train", 300, PicturePart::training);
  write_idx(temporary.path(), "other", 50, PicturePart::held_out);
  std::vector<std::string> overrides = of_files();
  overrides.push_back("data.validation_pictures='" + folder("other-images").string() + "'");
  overrides.push_back("data.validation_labels='" + folder("other-labels").string() + "'");
  const TrainingResult result = trained(small_classifier(overrides), "run");
  const std::string labels = file_text(folder("other-labels")).substr(8), images = file_text(folder("other-images")).substr(16);
  write_text(folder("one.pgm"), "P5 20 20 255\n" + images.substr(400 * 7, 400));
  write_text(folder("large.pgm"), "P5 40 40 255\n" + std::string(1600, '\x40'));
  const auto said_of = [&](const std::vector<std::string>& names, std::int64_t top) {
    std::vector<fs::path> files;
    for (const std::string& name : names) files.push_back(folder(name));
    return classify({.run = folder("run"), .files = files, .top = top, .queue = make_cpu_queue(2), .device = probe_cpu(2)});
  };
  const Classification said = said_of({"other-images", "one.pgm", "large.pgm"}, 10);
  EXPECT_EQ(said.step, 6);
  ASSERT_EQ(said.pictures.size(), 52U);
  std::int64_t right = 0;
  for (std::size_t i = 0; i < 50; ++i) right += said.pictures[i].likeliest.front().label == labels[i] ? 1 : 0;
  EXPECT_EQ(result.validation.right, right);
  EXPECT_EQ(said.pictures[7].name, folder("other-images").string() + "[7]");
  EXPECT_EQ(said.pictures[50].name, folder("one.pgm").string());
  for (const ClassifiedPicture& picture : said.pictures) {
    double sum = 0.0;
    for (const ClassProbability& one : picture.likeliest) sum += one.probability;
    EXPECT_NEAR(sum, 1.0, 1e-12);
  }
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(said.pictures[50].likeliest[i].label, said.pictures[7].likeliest[i].label);
    EXPECT_NEAR(said.pictures[50].likeliest[i].probability, said.pictures[7].likeliest[i].probability, 1e-6);
  }
  EXPECT_EQ(said_of({"one.pgm"}, 3).pictures.front().likeliest.size(), 3U);
}

TEST_F(Seeing, RefusesWhatIsNoPicture) {
  trained(small_classifier({"run.steps=1"}), "run");
  write_text(folder("cut.pgm"), "P5 20 20 255\nabc");
  write_text(folder("small.pgm"), "P5 10 10 255\n" + std::string(100, 'a'));
  write_text(folder("cut-images"), std::string("\0\0\x08\x03\0\0\0\x02", 8));
  for (const char* name : {"cut.pgm", "small.pgm", "cut-images", "absent.png"}) {
    const std::string said = refusal_by(
        [&] { (void)classify({.run = folder("run"), .files = {folder(name)}, .queue = make_cpu_queue(2), .device = probe_cpu(2)}); });
    EXPECT_NE(said.find(name), std::string::npos) << said;
  }
}

TEST_F(Seeing, RefusesWhatNeedsTokens) {
  trained(small_classifier({"run.steps=1"}), "run");
  EXPECT_NE(refusal_by([&] {
              open_trained_model(folder("run"), make_cpu_queue(2), probe_cpu(2), {});
            }).find("needs a model of tokens, and model.architecture = \"encoder_classifier\" sees pictures."),
            std::string::npos);
  const Recipe recipe = small_classifier();
  Context context(make_cpu_queue(2), probe_cpu(2), context_options(recipe));
  TrainStep step(context, resolve(recipe));
  EXPECT_NE(refusal_by([&] { (void)step.model(); }), "no error");
}

TEST(SeeingRecipe, KeysThatDoNotGoTogetherAreRefused) {
  const std::vector<RefusedRecipe> all = {
      {{"model.vocabulary=64"}, "model.vocabulary = 64 would not be read: model.architecture is \"encoder_classifier\"; leave it out."},
      {{"batch.source_tokens=0"}, "batch.source_tokens = 0 would not be read: model.architecture is \"encoder_classifier\"; leave it out."},
      {{"guidelines.pad_vocabulary_to=8"},
       "guidelines.pad_vocabulary_to = 8 would not be read: model.architecture is \"encoder_classifier\"; leave it out."},
      {{"model.positions=rope"},
       "model.positions = \"rope\" numbers tokens, and an encoder of pictures learns a row for each of their places; set it to "
       "\"learned\"."},
      {{"model.patch=3"}, "model.patch = 3 does not divide data.picture_size = 20; patches fill a picture. Set a divisor."},
      {{"model.stem=none"},
       "model.stem = \"none\" makes no rows of pictures, which an encoder_classifier sees; set it to \"patch\" or \"convolution\"."},
      {{"model.stem_pool=true"}, "model.stem_norm and model.stem_pool belong to model.stem = \"convolution\"; leave them out."},
      {{"model.stem=convolution"},
       "model.patch = 5 is not made by halving sides, as model.stem = \"convolution\" does; set a power of two from 2 on."},
      {{"model.stem=convolution", "model.stem_pool=true", "model.patch=2"},
       "model.patch = 2 is not made by halving sides, as model.stem = \"convolution\" does and, with model.stem_pool, does twice at least; "
       "set a power of two from 4 on."},
      {{"data.channels=2"}, "data.channels = 2 are no colors; set 1, shades of grey, or 3, red, green and blue."},
      {{"batch.pictures=1048577"},
       "batch.pictures = 1048577 of 20 x 20 pixels are too many for one pass; lower it, and raise batch.accumulate."},
      {{"run.ranks=2"},
       "run.ranks = 2 shares out rows of tokens, and a model that sees pictures trains on one device; set run.ranks to 1."},
      {{"model.encoder_layers=0"}, "model.encoder_layers = 0 in an encoder_classifier model; set it to at least 1."},
      {{"data.source=a.txt"}, "data.source = \"a.txt\" would not be read: data.kind is \"pictures\"."},
      {{"data.kind=text"},
       "data.kind = \"text\" and model.architecture = \"encoder_classifier\" do not go together: \"pictures\" are what an "
       "\"encoder_classifier\" sees; set both or neither."}};
  for (const RefusedRecipe& one : all) EXPECT_EQ(refusal_by([&] { small_classifier(one.overrides); }), one.sentence);
  EXPECT_EQ(refusal_by([] { small_recipe({"model.classes=11"}); }),
            "model.classes = 11 would not be read: model.architecture is \"encoder_decoder\"; leave it out.");
  EXPECT_EQ(refusal_by([] { small_recipe({"data.pictures=a"}); }), "data.pictures = \"a\" would not be read: data.kind is \"synthetic\".");
  EXPECT_NE(refusal_by([] { small_recipe({"data.kind=pictures"}); }).find("do not go together"), std::string::npos);
}

TEST(SeeingRecipe, ItsDataSaysWhatAShadeBecomes) {
  const auto first = [](const std::vector<std::string>& overrides) {
    const Recipe recipe = small_classifier(overrides);
    const Corpus corpus(corpus_of(recipe));
    const Batch batch = corpus.validation(batch_shape(resolve(recipe))).next().value();
    Context context(make_cpu_queue(1), probe_cpu(1), context_options(recipe));
    PictureClassifier model(context, recipe);
    const PictureTensors tensors = model.make_batch(recipe.batch.pictures);
    upload_pictures(context, batch.pixels, batch.target_out, tensors);
    return read_elements(context, tensors.pixels.values);
  };
  const std::vector<double> plain = first({"data.mean=0", "data.deviation=1"}), moved = first({"data.mean=0.25", "data.deviation=0.5"});
  for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_NEAR(moved[i], (plain[i] - 0.25) / 0.5, 1e-6);
  EXPECT_EQ(first({}), first({"data.mean=0.5", "data.deviation=0.5"}));
}

TEST(SeeingRecipe, RowsAreItsPatches) {
  const ResolvedRecipe resolved = resolve(small_classifier());
  EXPECT_EQ(resolved.shapes, (StepShapes{.vocabulary = 10, .vocabulary_padded = 10, .source_rows = 24 * 16, .target_rows = 24}));
  EXPECT_EQ(text_of(resolved.segments, batch_shape(resolved)), "attention is counted for pictures of 16 patches each.");
  EXPECT_EQ(resolved.segments.source, (SegmentSums{.queries = 24 * 16, .pairs = 24 * 16 * 16}));
}

}  // namespace
}  // namespace tilewave
