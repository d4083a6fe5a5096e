// What a step is worth in real tokens: the corpus packed as training packs it, and the same answer wherever a gain is predicted.
#include "models/planning/real_tokens.h"

#include <gtest/gtest.h>

#include "kernels/core/device_profiles.h"
#include "models/planning/predicted_settings.h"
#include "models/study/ablation.h"
#include "tests/kernels/support.h"
#include "tests/models/training/small_runs.h"

namespace tilewave {
namespace {

// Names of numbers in bytes, so that no tokenizer is trained.
Recipe numbers(std::int64_t source, std::int64_t target, const std::vector<std::string>& overrides = {}) {
  std::vector<std::string> all = {"data.kind=number_names",
                                  "data.tokenizer=bytes",
                                  "model.vocabulary=260",
                                  "model.max_positions=96",
                                  "batch.sequence=96",
                                  concat("batch.source_tokens=", source),
                                  concat("batch.target_tokens=", target)};
  all.insert(all.end(), overrides.begin(), overrides.end());
  return small_recipe(all);
}

RealTokens tokens_of(const Recipe& recipe) { return RealTokenCounter(recipe)(resolve(recipe)); }

TEST(RealTokens, AreWhatTrainingPacks) {
  const Recipe recipe = numbers(1000, 900);
  const RealTokens counted = tokens_of(recipe);
  const ResolvedRecipe resolved = resolve(recipe);
  BatchStream stream = corpus_of(recipe).training(batch_shape(resolved));
  double source = 0.0, target = 0.0;
  constexpr int kBatches = 60;
  for (int i = 0; i < kBatches; ++i) {
    const Batch batch = *stream.next();
    for (const std::int32_t length : batch.source_lengths) source += length;
    target += static_cast<double>(batch.real_tokens);
  }
  EXPECT_NEAR(counted.source / (source / kBatches), 1.0, 0.01);
  EXPECT_NEAR(counted.target / (target / kBatches), 1.0, 0.01);
  EXPECT_LE(counted.source, 1000.0);
  EXPECT_LE(counted.target, 900.0);
  EXPECT_EQ(tokens_of(numbers(1000, 900, {"batch.accumulate=3"})).target, 3.0 * counted.target);
}

// What a part of them tells.
TEST(RealTokens, OfVeryManyRowsAreInProportion) {
  constexpr std::int64_t kPart = 1 << 17, kWhole = 1 << 24;
  const RealTokens part = tokens_of(numbers(kPart, kPart)), whole = tokens_of(numbers(kWhole, kWhole));
  EXPECT_EQ(whole.target, kWhole / kPart * part.target);
  EXPECT_EQ(whole.source, kWhole / kPart * part.source);
}

TEST(RealTokens, RowsThatOneSideGainsAloneStayGhosts) {
  const RealTokens both = tokens_of(numbers(1000, 1000));
  const RealTokens more_target = tokens_of(numbers(1000, 2000)), most_target = tokens_of(numbers(1000, 3000));
  EXPECT_EQ(more_target.target, most_target.target);
  EXPECT_LT(growth(more_target, both), 1.5);
  EXPECT_GT(growth(tokens_of(numbers(2000, 2000)), both), 1.9);
}

// Made-up ids fill every row; what one side gains alone counts for nothing all the same.
TEST(RealTokens, OfMadeUpIdsAreTheRows) {
  const auto made_up = [](std::int64_t source, std::int64_t target) {
    return tokens_of(small_recipe({concat("batch.source_tokens=", source), concat("batch.target_tokens=", target)}));
  };
  EXPECT_EQ(made_up(45, 57).source, 45.0);
  EXPECT_EQ(made_up(45, 57).target, 57.0);
  EXPECT_EQ(growth(made_up(90, 50), made_up(45, 50)), 1.0);
  EXPECT_EQ(growth(made_up(40, 50), made_up(80, 50)), 0.5);
  EXPECT_EQ(growth(made_up(90, 100), made_up(45, 50)), 2.0);
  EXPECT_EQ(RealTokenCounter(small_recipe(kDecoderOnly))(resolve(small_recipe(kDecoderOnly))).source, 0.0);
}

TEST(RealTokens, WithoutTheCorpusSidesFillAlike) {
  const auto parallel = [](std::int64_t source, std::int64_t target) {
    return small_recipe({"data.kind=parallel", "data.tokenizer=bytes", "model.vocabulary=260", concat("batch.source_tokens=", source),
                         concat("batch.target_tokens=", target)});
  };
  RealTokenCounter tokens(parallel(100, 80));
  const RealTokens asked = tokens(resolve(parallel(100, 80)));
  EXPECT_NE(tokens.estimated().find("data.source is missing"), std::string::npos) << tokens.estimated();
  EXPECT_EQ(asked.target, 80.0);
  EXPECT_EQ(tokens(resolve(parallel(200, 80))).target, 80.0);
  EXPECT_EQ(tokens(resolve(parallel(100, 160))).target, 80.0);
  EXPECT_EQ(tokens(resolve(parallel(50, 80))).target, 40.0);
  EXPECT_EQ(tokens(resolve(parallel(200, 160))).target, 160.0);
}

// Only files that are not here are estimated; what is wrong with the corpus or the rows is said.
TEST(RealTokens, RowsThatNoPairFitsAreRefused) {
  const Recipe recipe = numbers(120, 160, {"batch.sequence=2"});
  RealTokenCounter tokens(recipe);
  testing_support::expect_error([&] { tokens(resolve(recipe)); }, "longer than batch.sequence = 2");
  EXPECT_EQ(tokens.estimated(), "");
  const std::vector<PredictedSetting> planned =
      predict_settings(numbers(120, 160, {}), settings_of(parse_switches("batch.sequence=96,2")), probe_cpu(2));
  EXPECT_TRUE(planned[0].predicted()) << planned[0].refused;
  EXPECT_TRUE(planned[1].refused_input);
  EXPECT_FALSE(planned[1].gain.has_value());
}

// plan's settings and ablate's prediction are one number.
TEST(RealTokens, AblationsPredictWhatPlansPredict) {
  const DeviceInfo cpu = probe_cpu(2);
  const Recipe recipe = numbers(
      120, 160,
      {"run.precision=fp64", "model.decoder_layers=1", "model.encoder_layers=1", "guidelines.wave_tile=64x8", "guidelines.wave_limit=0.5"});
  for (const char* switches : {"batch.target_tokens=240,160", "wave_free_batch=off,up"}) {
    const std::vector<Setting> settings = settings_of(parse_switches(switches));
    const std::vector<PredictedSetting> planned = predict_settings(recipe, settings, cpu);
    const AblationReport measured =
        ablate({.recipe = recipe,
                .settings = settings,
                .steps = 1,
                .timing = {.load_s = 0.0, .block_s = 0.001, .screening_blocks = 1, .rounds = 1, .finalists = kMaxSettings},
                .queue = make_cpu_queue(2),
                .device = cpu});
    ASSERT_EQ(planned.size(), 2U);
    for (std::size_t i = 0; i < planned.size(); ++i) {
      ASSERT_TRUE(planned[i].predicted() && measured.variants[i].ran()) << planned[i].refused << measured.variants[i].refused;
      EXPECT_EQ(planned[i].target_tokens, measured.variants[i].target_tokens) << switches;
      EXPECT_EQ(planned[i].shapes, measured.variants[i].resolved.shapes) << switches;
      EXPECT_NEAR(*planned[i].gain, *measured.variants[i].predicted_gain, 1e-12) << switches;
      EXPECT_NEAR(*planned[i].gemm_gain, *measured.variants[i].predicted_gemm_gain, 1e-12) << switches;
    }
  }
}

}  // namespace
}  // namespace tilewave
