// A classifier of pictures: its gradients, what it has to train, what a picture's logits depend on, and that it learns to see digits.
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

ModelConfig small_encoder() {
  ModelConfig config;
  config.d_model = 6;
  config.d_ff = 10;
  config.heads = 2;
  config.encoder_layers = 2;
  config.activation = FeedForwardActivation::gelu_tanh;
  return config;
}

constexpr ClassifierShape kSmall = {.picture = {.height = 6, .width = 4, .channels = 2}, .patch = 2, .classes = 3};

Images images_of(const ClassifierShape& shape, std::int64_t count) {
  return {.count = count, .channels = shape.picture.channels, .height = shape.picture.height, .width = shape.picture.width};
}

class EncoderClassifierTest : public Fp64Test {
 protected:
  static constexpr std::int64_t kPictures = 3;

  explicit EncoderClassifierTest(const ModelConfig& config = small_encoder()) : model(parameters, config, kSmall) {
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<float>(i * 37 % 19) / 9.0F - 1.0F;
  }
  std::vector<double> logits() {
    const NoGradient scope(context);
    upload_pictures(context, pixels, labels, batch);
    return read_elements(context, model.logits(context, batch, {}).value());
  }

  Parameters parameters{context, 5};
  EncoderClassifier model;
  PictureTensors batch = make_picture_tensors(context, images_of(kSmall, kPictures), kSmall.patches());
  std::vector<float> pixels = std::vector<float>(static_cast<std::size_t>(kPictures * kSmall.picture.values()));
  std::vector<std::int32_t> labels = {2, kNoLabel, 0};
};

TEST_F(EncoderClassifierTest, GradientsAreThoseOfDifferences) {
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
  for (const char* name : {"stem.weight", "stem.bias", "position.weight", "encoder.0.self_attention.qkv.weight",
                           "encoder.1.ffn.down.weight", "encoder.norm.weight", "head.weight", "head.bias"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
  const GradcheckReport report = gradcheck(
      context,
      [&](Context& c) {
        return cross_entropy(c, {.logits = model.logits(c, batch, {}), .labels = batch.labels, .vocabulary = kSmall.classes});
      },
      variables);
  for (const GradcheckEntry& entry : report.entries) EXPECT_TRUE(entry.passed) << entry.name << ": " << entry.error;
  EXPECT_EQ(report.entries.size(), variables.size());
}

TEST_F(EncoderClassifierTest, PicturesOfABatchDoNotSeeEachOther) {
  const std::vector<double> before = logits();
  ASSERT_EQ(before.size(), static_cast<std::size_t>(kPictures * kSmall.classes));
  const auto values = static_cast<std::ptrdiff_t>(kSmall.picture.values());
  std::fill(pixels.begin() + values, pixels.begin() + 2 * values, 0.5F);  // of the second picture
  const std::vector<double> after = logits();
  for (std::size_t i = 0; i < before.size(); ++i) {
    const bool second = i / static_cast<std::size_t>(kSmall.classes) == 1;
    EXPECT_EQ(before[i] != after[i], second) << "logit " << i;
  }
}

TEST_F(EncoderClassifierTest, PlacesOfPatchesCount) {
  const std::vector<double> before = logits();
  const auto row = static_cast<std::ptrdiff_t>(kSmall.picture.width * kSmall.picture.channels);
  std::rotate(pixels.begin(), pixels.begin() + 2 * row, pixels.begin() + 6 * row);  // the first picture's rows of patches
  EXPECT_NE(logits().front(), before.front());
}

TEST_F(EncoderClassifierTest, RefusesPatchesThatDoNotFillAPicture) {
  Parameters other(context, 1);
  EXPECT_THROW(EncoderClassifier(other, small_encoder(), {.picture = {.height = 6, .width = 5, .channels = 1}, .patch = 2, .classes = 3}),
               Error);
  EXPECT_THROW(EncoderClassifier(other, small_encoder(), {.picture = kSmall.picture, .patch = 2, .classes = 1}), Error);
}

TEST(EncoderClassifierTraining, LearnsToSeeDrawnDigits) {
  constexpr std::int64_t kPictures = 64, kSteps = 400, kHeldOut = 512;
  constexpr ClassifierShape kShape = {.picture = {.height = 28, .width = 28, .channels = 1}, .patch = 7, .classes = kDrawnDigitClasses};
  ModelConfig config;
  config.d_model = 48;
  config.d_ff = 96;
  config.heads = 4;
  config.encoder_layers = 2;
  Context context(make_cpu_queue(2), probe_cpu(2), {});
  Parameters parameters(context, 1);
  const EncoderClassifier model(parameters, config, kShape);
  AdamW optimizer(parameters, {});
  const PictureTensors batch = make_picture_tensors(context, images_of(kShape, kPictures), kShape.patches());
  const auto set = [&](PicturePart part, std::int64_t count) {
    return drawn_digits({.count = count, .shape = kShape.picture, .seed = 1, .part = part});
  };
  const PictureSet training = set(PicturePart::training, 20'000);
  const PictureNormalization normalization = measured_normalization(training, 500);
  PictureBatches batches(training, normalization, kPictures, {.kind = Pass::Kind::shuffled_epochs, .seed = 1});
  for (std::int64_t step = 1; step <= kSteps; ++step) {
    const PictureBatch pictures = batches.next().value();
    upload_pictures(context, pictures.pixels, pictures.labels, batch);
    context.write_step_state({.step = step, .seed = 1, .learning_rate = 3e-3, .real_tokens = pictures.real});
    parameters.reset_gradients();
    context.begin_step();
    backward(context,
             cross_entropy(context, {.logits = model.logits(context, batch, {}), .labels = batch.labels, .vocabulary = kShape.classes}));
    optimizer.update();
    context.end_step();
  }
  PictureBatches held_out(set(PicturePart::held_out, kHeldOut), normalization, kPictures, {});
  std::int64_t right = 0;
  while (const std::optional<PictureBatch> pictures = held_out.next()) {
    const NoGradient scope(context);
    upload_pictures(context, pictures->pixels, pictures->labels, batch);
    const HostMatrix logits(context, model.logits(context, batch, {}));
    for (std::int64_t picture = 0; picture < pictures->real; ++picture) {
      std::int64_t best = 0;
      for (std::int64_t c = 1; c < kShape.classes; ++c) best = logits(picture, c) > logits(picture, best) ? c : best;
      right += best == pictures->labels[static_cast<std::size_t>(picture)] ? 1 : 0;
    }
  }
  EXPECT_GE(right, kHeldOut * 9 / 10);
}

}  // namespace
}  // namespace tilewave
