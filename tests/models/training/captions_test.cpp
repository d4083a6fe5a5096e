// Runs that learn to say what pictures show: their batches hold pictures and whole names, they go on bit for bit from a checkpoint,
// captions depend on a picture alone, and what does not go together is refused in one sentence.
#include <csignal>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <vector>

#include "framework/data/drawn_digits.h"
#include "framework/data/number_names.h"
#include "models/decoding/decode.h"
#include "models/decoding/trained_model.h"
#include "models/planning/real_tokens.h"
#include "models/training/captioning.h"
#include "models/training/classification.h"
#include "models/training/evaluation.h"
#include "models/training/trainer.h"
#include "tests/models/training/picture_runs.h"
#include "tests/models/training/small_runs.h"
#include "tests/shell.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;

class Captioned : public PictureRuns {
 protected:
  // A drawn digit as a PGM file.
  fs::path drawn(std::int64_t index, std::int64_t side = 20) const {
    const PictureSet set = drawn_digits(
        {.count = index + 1, .shape = {.height = side, .width = side, .channels = 1}, .seed = 1, .part = PicturePart::held_out});
    std::vector<std::uint8_t> pixels(static_cast<std::size_t>(side * side));
    set.read(index, pixels);
    const fs::path path = folder("digit" + std::to_string(index) + ".pgm");
    write_text(path, "P5 " + std::to_string(side) + ' ' + std::to_string(side) + " 255\n" + std::string(pixels.begin(), pixels.end()));
    return path;
  }

  Captioning said_of(const std::string& run, const std::vector<fs::path>& files, std::int64_t beams = 1) const {
    return caption_files({.run = folder(run), .files = files, .beams = beams, .queue = make_cpu_queue(2), .device = probe_cpu(2)});
  }
};

TEST_F(Captioned, ABatchHoldsPicturesAndTheirNames) {
  const Recipe recipe = small_captioner();
  const ResolvedRecipe resolved = resolve(recipe);
  EXPECT_EQ(resolved.shapes, (StepShapes{.vocabulary = 264, .vocabulary_padded = 264, .source_rows = 12 * 16, .target_rows = 80}));
  const Corpus corpus(corpus_of(recipe));
  const BatchShape shape = batch_shape(resolved);
  EXPECT_EQ(shape.sequence, 16);
  BatchStream stream = corpus.training(shape);
  const Batch batch = stream.next().value();
  EXPECT_EQ(batch.pixels.size(), 12U * 400U);
  ASSERT_EQ(batch.source_lengths, std::vector<std::int32_t>(12, 16));
  ASSERT_EQ(batch.target_lengths.size(), 12U);
  std::int64_t first = 0, real = 0;
  for (const std::int32_t length : batch.target_lengths) {
    const std::vector<std::int32_t> ids(batch.target_out.begin() + first, batch.target_out.begin() + first + length - 1);
    const std::string name = corpus.tokenizer()->decode(ids);
    bool known = false;
    for (std::int32_t digit = 0; digit < 10; ++digit) known = known || english_name(digit) == name;
    EXPECT_TRUE(known) << name;
    first += length;
    real += length;
  }
  EXPECT_EQ(batch.real_tokens, real);
  RealTokenCounter counter(recipe);
  const RealTokens tokens = counter(resolved);
  EXPECT_EQ(tokens.source, 2.0 * 12 * 16);
  EXPECT_NEAR(tokens.target, 2.0 * 12 * 5, 12.0) << "names of three to five letters and an end";
}

class CaptionedBy : public Captioned, public testing::WithParamInterface<std::vector<std::string>> {};
INSTANTIATE_TEST_SUITE_P(Stems, CaptionedBy,
                         testing::Values(std::vector<std::string>{},
                                         std::vector<std::string>{"model.stem=convolution", "model.patch=4", "data.tokenizer=bpe",
                                                                  "data.tokenizer_vocabulary=60", "batch.accumulate=1"}));

TEST_P(CaptionedBy, ARunGoesOnBitForBit) {
  const Recipe recipe = small_captioner(GetParam());
  const TrainingResult whole = trained(recipe, "whole");
  EXPECT_EQ(trained(recipe, "cut", 4).signal, SIGTERM);
  const TrainingResult resumed = trained(recipe, "cut", 0, RunStart::resume);
  EXPECT_EQ(resumed.validation.loss, whole.validation.loss);
  EXPECT_FALSE(whole.validation.right) << "tokens are counted, and not pictures";
  for (const char* file : {"weights.safetensors", "optimizer.safetensors"}) {
    const fs::path stored = fs::path("checkpoints/step-00000006") / file;
    EXPECT_TRUE(file_text(folder("cut") / stored) == file_text(folder("whole") / stored)) << file;
  }
  const Evaluation evaluated = evaluate_run({.run = folder("cut"), .queue = make_cpu_queue(2), .device = probe_cpu(2)});
  EXPECT_EQ(evaluated.loss.loss, whole.validation.loss);
  const std::vector<fs::path> files = {drawn(0), drawn(7)};
  const Captioning first = said_of("whole", files), second = said_of("cut", files);
  ASSERT_EQ(first.pictures.size(), 2U);
  EXPECT_EQ(first.step, 6);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(first.pictures[i].name, files[i].string());
    EXPECT_EQ(first.pictures[i].caption, second.pictures[i].caption);
    EXPECT_EQ(said_of("whole", {files[i]}).pictures.front().caption, first.pictures[i].caption) << "beside another picture";
  }
  EXPECT_EQ(said_of("whole", files, 3).pictures.size(), 2U);
}

TEST_F(Captioned, LearnsTheNamesOfDigits) {
  const Recipe recipe =
      small_captioner({"model.d_model=48", "model.d_ff=96", "model.heads=4", "model.dropout=0", "model.attention_dropout=0",
                       "batch.pictures=64", "batch.target_tokens=384", "batch.accumulate=1", "run.steps=600", "schedule.kind=cosine",
                       "schedule.warmup_steps=50", "run.validate_every=0", "run.checkpoint_every=0", "optimizer.learning_rate=3e-3"});
  EXPECT_LT(trained(recipe, "names").validation.loss, 0.1);
  std::vector<fs::path> files;
  for (std::int64_t index = 0; index < 20; ++index) files.push_back(drawn(index));
  const Captioning said = said_of("names", files);
  std::int64_t right = 0;
  for (std::size_t i = 0; i < said.pictures.size(); ++i)
    right += said.pictures[i].caption == english_name(static_cast<std::int32_t>(i % 10));
  EXPECT_GE(right, 18);
}

TEST_F(Captioned, OtherWaysToReadARunAreRefused) {
  trained(small_captioner({"run.steps=1"}), "run");
  TrainedModel model = open_trained_model(folder("run"), make_cpu_queue(2), probe_cpu(2), {});
  const std::vector<std::vector<std::int32_t>> sources = {{5, 6}};
  EXPECT_EQ(refusal_by([&] { translate(*model.model, sources); }), "a model that sees pictures cannot translate text; use caption.");
  EXPECT_EQ(refusal_by([&] { generate(*model.model, sources.front(), {}, [](std::int32_t) {}); }),
            "an encoder_decoder model cannot continue a text; use caption.");
  EXPECT_NE(refusal_by([&] {
              (void)classify({.run = folder("run"), .files = {}, .queue = make_cpu_queue(2), .device = probe_cpu(2)});
            }).find("tilewave caption says what they show."),
            std::string::npos);
  EXPECT_NE(refusal_by([&] { said_of("run", {folder("absent.png")}); }).find("absent.png"), std::string::npos);
  trained(small_recipe({"run.steps=1"}), "tokens");
  EXPECT_NE(refusal_by([&] { said_of("tokens", {}); }).find("reads tokens and sees no pictures"), std::string::npos);
  trained(small_classifier({"run.steps=1"}), "classes");
  EXPECT_NE(refusal_by([&] { said_of("classes", {}); }).find("use tilewave classify"), std::string::npos);
}

TEST(CaptionRecipe, KeysThatDoNotGoTogetherAreRefused) {
  const std::vector<RefusedRecipe> all = {
      {{"model.classes=11"},
       "model.classes = 11 would not be read: model.architecture is \"encoder_decoder\" and model.stem \"patch\"; leave it out."},
      {{"batch.source_tokens=64"},
       "batch.source_tokens = 64 would not be read: model.architecture is \"encoder_decoder\" and model.stem \"patch\"; leave it out."},
      {{"guidelines.batch_multiple_of=8"},
       "guidelines.batch_multiple_of = 8 would not be read: model.architecture is \"encoder_decoder\" and model.stem \"patch\"; leave it "
       "out."},
      {{"model.positions=rope"},
       "model.positions = \"rope\" numbers tokens, and an encoder of pictures learns a row for each of their places; set it to "
       "\"learned\"."},
      {{"data.kind=number_names"},
       "data.kind = \"number_names\" and model.stem = \"patch\" in an encoder_decoder model do not go together: \"captions\" are what an "
       "encoder_decoder with a stem learns; set both or neither."},
      {{"model.architecture=decoder_only", "model.encoder_layers=0"},
       "model.stem = \"patch\" makes rows of an encoder, and a decoder_only model has none; set it to \"none\", or model.architecture to "
       "\"encoder_decoder\"."},
      {{"run.ranks=2"},
       "run.ranks = 2 shares out rows of tokens, and a model that sees pictures trains on one device; set run.ranks to 1."}};
  for (const RefusedRecipe& one : all) EXPECT_EQ(refusal_by([&] { small_captioner(one.overrides); }), one.sentence);
  const Recipe narrow = small_captioner({"batch.target_tokens=71"});
  const Corpus corpus(corpus_of(narrow));
  EXPECT_EQ(refusal_by([&] { (void)corpus.training(batch_shape(resolve(narrow))); }),
            "the longest caption takes 6 rows, and 12 of them do not fit batch.target_tokens = 71 or batch.sequence; set "
            "batch.target_tokens to 72 and batch.sequence to 6 at least, or take fewer batch.pictures.");
}

}  // namespace
}  // namespace tilewave
