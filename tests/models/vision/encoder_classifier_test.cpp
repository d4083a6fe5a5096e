// A classifier of pictures with each of its stems: its gradients, what it has to train, what a picture's logits depend on, and that it
// learns to see digits.
#include "models/vision/encoder_classifier.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "framework/autograd/gradcheck.h"
#include "framework/data/drawn_digits.h"
#include "framework/data/pictures.h"
#include "framework/ops/cross_entropy.h"
#include "framework/optimizer/adamw.h"
#include "framework/tensor/host_tensor.h"
#include "tests/framework/support.h"

namespace tilewave {
namespace {

using namespace testing_support;

struct StemCase {
  const char* name;
  Stem stem = Stem::patch;
  StemNorm norm = StemNorm::batch_norm;
  bool pool = false;
  PictureShape picture = {.height = 6, .width = 4, .channels = 2};
  std::int64_t patch = 2;
};
void PrintTo(const StemCase& stem, std::ostream* out) { *out << stem.name; }

constexpr StemCase kPatches = {.name = "Patch"}, kBatchNorm = {.name = "BatchNorm", .stem = Stem::convolution},
                   kLayerNorm = {.name = "LayerNorm", .stem = Stem::convolution, .norm = StemNorm::layer_norm},
                   kPooled = {.name = "Pool",
                              .stem = Stem::convolution,
                              .pool = true,
                              .picture = {.height = 8, .width = 4, .channels = 1},
                              .patch = 4},
                   kTwice = {.name = "Twice", .stem = Stem::convolution, .picture = {.height = 4, .width = 8, .channels = 3}, .patch = 4};

ModelConfig small_encoder(const StemCase& stem = kPatches) {
  ModelConfig config;
  config.d_model = 6;
  config.d_ff = 10;
  config.heads = 2;
  config.encoder_layers = 2;
  config.activation = FeedForwardActivation::gelu_tanh;
  config.stem = stem.stem;
  config.stem_norm = stem.norm;
  config.stem_pool = stem.pool;
  return config;
}

ClassifierShape shape_of(const StemCase& stem) { return {.picture = stem.picture, .patch = stem.patch, .classes = 3}; }

// Three pictures, whose second one counts nothing.
class ClassifierOf : public Fp64Test {
 protected:
  static constexpr std::int64_t kPictures = 3;

  explicit ClassifierOf(const StemCase& stem) : shape(shape_of(stem)), model(parameters, small_encoder(stem), shape) {
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i * 37 % 19 * 14);
  }
  std::vector<double> logits(BatchNormMode mode = BatchNormMode::evaluation) {
    const NoGradient scope(context);
    upload_pictures(context, pixels, labels, batch);
    return read_elements(context, model.logits(context, batch, {}, mode).value());
  }

  ClassifierShape shape;
  Parameters parameters{context, 5};
  EncoderClassifier model;
  SeenPictures seen = {.shape = shape.picture, .normalization = {.mean = {0.5}, .deviation = {0.5}}};
  PictureTensors batch = make_picture_tensors(context, make_pixels(context, seen, kPictures), shape.patches());
  std::vector<std::uint8_t> pixels = std::vector<std::uint8_t>(static_cast<std::size_t>(kPictures * shape.picture.values()));
  std::vector<std::int32_t> labels = {2, kNoLabel, 0};
};

class EncoderClassifierTest : public ClassifierOf, public testing::WithParamInterface<StemCase> {
 protected:
  EncoderClassifierTest() : ClassifierOf(GetParam()) {}
};
class BatchNormStem : public ClassifierOf {
 protected:
  BatchNormStem() : ClassifierOf(kBatchNorm) {}
};

INSTANTIATE_TEST_SUITE_P(Stems, EncoderClassifierTest, testing::Values(kPatches, kBatchNorm, kLayerNorm, kPooled, kTwice),
                         [](const auto& stem) { return std::string(stem.param.name); });

TEST_P(EncoderClassifierTest, GradientsAreThoseOfDifferences) {
  upload_pictures(context, pixels, labels, batch);
  context.write_step_state({.step = 1, .seed = 7, .real_tokens = 2});
  std::vector<NamedVariable> variables;
  std::set<std::string> names;
  for (const Parameter& parameter : parameters.all()) {
    if (parameter.decay() == WeightDecay::no) {  // off the values that they begin with
      std::uint64_t at = 0;
      write_elements(context, parameter.master, [&](std::int64_t, std::int64_t) { return 0.8 + 0.05 * static_cast<double>(at++ % 5); });
    }
    variables.push_back({parameter.spec.name, parameter.variable});
    names.insert(parameter.spec.name);
  }
  const bool patches = GetParam().stem == Stem::patch;
  for (const char* name :
       {patches ? "stem.weight" : "stem.0.weight", patches ? "stem.bias" : "stem.projection.bias", "position.weight",
        "encoder.0.self_attention.qkv.weight", "encoder.1.ffn.down.weight", "encoder.norm.weight", "head.weight", "head.bias"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
  EXPECT_EQ(names.contains("stem.0.norm.weight"), !patches);
  EXPECT_EQ(names.contains("stem.1.weight"), GetParam().patch == 4 && !GetParam().pool);
  EXPECT_EQ(parameters.buffers().empty(), patches || GetParam().norm == StemNorm::layer_norm);
  const GradcheckReport report = gradcheck(
      context,
      [&](Context& c) {
        return cross_entropy(
            c, {.logits = model.logits(c, batch, {}, BatchNormMode::training), .labels = batch.labels, .vocabulary = shape.classes});
      },
      variables);
  for (const GradcheckEntry& entry : report.entries) EXPECT_TRUE(entry.passed) << entry.name << ": " << entry.error;
  EXPECT_EQ(report.entries.size(), variables.size());
}

TEST_P(EncoderClassifierTest, PicturesOfABatchDoNotSeeEachOther) {
  const std::vector<double> before = logits();
  ASSERT_EQ(before.size(), static_cast<std::size_t>(kPictures * shape.classes));
  const auto values = static_cast<std::ptrdiff_t>(shape.picture.values());
  std::fill(pixels.begin() + values, pixels.begin() + 2 * values, std::uint8_t{191});  // of the second picture
  const std::vector<double> after = logits();
  for (std::size_t i = 0; i < before.size(); ++i) {
    const bool second = i / static_cast<std::size_t>(shape.classes) == 1;
    EXPECT_EQ(before[i] != after[i], second) << "logit " << i;
  }
}

TEST_P(EncoderClassifierTest, PlacesOfPatchesCount) {
  const std::vector<double> before = logits();
  const auto row = static_cast<std::ptrdiff_t>(shape.picture.width * shape.picture.channels);
  std::rotate(pixels.begin(), pixels.begin() + 2 * row, pixels.begin() + shape.picture.height * row);  // the first picture's rows
  EXPECT_NE(logits().front(), before.front());
}

TEST_F(BatchNormStem, KeepsStatisticsOfWhatItWasTrainedOn) {
  const auto elements = [&](const std::string& name) {
    for (const Parameter& buffer : parameters.buffers()) {
      if (buffer.spec.name == name) return read_elements(context, buffer.master);
    }
    ADD_FAILURE() << "no buffer " << name;
    return std::vector<double>();
  };
  const std::vector<double> untrained = logits();
  EXPECT_EQ(elements("stem.0.norm.running_mean"), std::vector<double>(8, 0.0));
  EXPECT_EQ(elements("stem.0.norm.running_variance"), std::vector<double>(8, 1.0));
  logits(BatchNormMode::training);
  const std::vector<double> mean = elements("stem.0.norm.running_mean"), variance = elements("stem.0.norm.running_variance");
  EXPECT_NE(mean, std::vector<double>(8, 0.0));
  EXPECT_NE(logits(), untrained);
  EXPECT_EQ(elements("stem.0.norm.running_mean"), mean) << "an evaluation moved it";
  EXPECT_EQ(elements("stem.0.norm.running_variance"), variance);
  const std::vector<double> trained = logits(BatchNormMode::training);
  std::fill(pixels.begin() + static_cast<std::ptrdiff_t>(shape.picture.values()), pixels.end(), std::uint8_t{191});  // of the others
  EXPECT_NE(logits(BatchNormMode::training).front(), trained.front()) << "training looks at all pictures of a batch";
}

TEST_F(BatchNormStem, IsRefusedWithPatchesThatHalvingDoesNotMake) {
  Parameters other(context, 1);
  const auto made = [&](const StemCase& stem) { EncoderClassifier(other, small_encoder(stem), shape_of(stem)); };
  EXPECT_THROW(made({.name = "", .stem = Stem::convolution, .picture = {.height = 6, .width = 6, .channels = 1}, .patch = 3}), Error);
  EXPECT_THROW(made({.name = "", .stem = Stem::convolution, .pool = true}), Error);
  EXPECT_THROW(made({.name = "", .stem = Stem::none}), Error);
  EXPECT_THROW(made({.name = "", .picture = {.height = 6, .width = 5, .channels = 1}}), Error);
  ClassifierShape one = shape_of(kPatches);
  one.classes = 1;
  EXPECT_THROW(EncoderClassifier(other, small_encoder(), one), Error);
}

class EncoderClassifierTraining : public testing::TestWithParam<Stem> {};
INSTANTIATE_TEST_SUITE_P(Stems, EncoderClassifierTraining, testing::Values(Stem::patch, Stem::convolution),
                         [](const auto& stem) { return std::string(name_of(stem.param)); });

TEST_P(EncoderClassifierTraining, LearnsToSeeDrawnDigits) {
  constexpr std::int64_t kPictures = 64, kHeldOut = 512;
  const std::int64_t steps = GetParam() == Stem::patch ? 400 : 280;  // of a stem that sees edges from the first step on
  const ClassifierShape shape = {
      .picture = {.height = 28, .width = 28, .channels = 1}, .patch = GetParam() == Stem::patch ? 7 : 4, .classes = kDrawnDigitClasses};
  ModelConfig config;
  config.d_model = 48;
  config.d_ff = 96;
  config.heads = 4;
  config.encoder_layers = 2;
  config.stem = GetParam();
  Context context(make_cpu_queue(2), probe_cpu(2), {});
  Parameters parameters(context, 1);
  const EncoderClassifier model(parameters, config, shape);
  AdamW optimizer(parameters, {});
  const auto set = [&](PicturePart part, std::int64_t count) {
    return drawn_digits({.count = count, .shape = shape.picture, .seed = 1, .part = part});
  };
  const PictureSet training = set(PicturePart::training, 20'000);
  const SeenPictures seen = {.shape = shape.picture, .normalization = measured_normalization(training, 500)};
  const PictureTensors batch = make_picture_tensors(context, make_pixels(context, seen, kPictures), shape.patches());
  PictureBatches batches(training, kPictures, {.kind = Pass::Kind::shuffled_epochs, .seed = 1});
  for (std::int64_t step = 1; step <= steps; ++step) {
    const PictureBatch pictures = batches.next().value();
    upload_pictures(context, pictures.pixels, pictures.labels, batch);
    context.write_step_state({.step = step, .seed = 1, .learning_rate = 3e-3, .real_tokens = pictures.real});
    parameters.reset_gradients();
    context.begin_step();
    backward(context, cross_entropy(context, {.logits = model.logits(context, batch, {}, BatchNormMode::training),
                                              .labels = batch.labels,
                                              .vocabulary = shape.classes}));
    optimizer.update();
    context.end_step();
  }
  PictureBatches held_out(set(PicturePart::held_out, kHeldOut), kPictures, {});
  std::int64_t right = 0;
  while (const std::optional<PictureBatch> pictures = held_out.next()) {
    const NoGradient scope(context);
    upload_pictures(context, pictures->pixels, pictures->labels, batch);
    const HostMatrix logits(context, model.logits(context, batch, {}, BatchNormMode::evaluation));
    for (std::int64_t picture = 0; picture < pictures->real; ++picture) {
      std::int64_t best = 0;
      for (std::int64_t c = 1; c < shape.classes; ++c) best = logits(picture, c) > logits(picture, best) ? c : best;
      right += best == pictures->labels[static_cast<std::size_t>(picture)] ? 1 : 0;
    }
  }
  EXPECT_GE(right, kHeldOut * 9 / 10);
}

}  // namespace
}  // namespace tilewave
