// Switches make the settings they say; variants are compared with the right baseline, keep their loss, and say why they did not run.
#include "models/study/ablation.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <optional>

#include "kernels/core/error.h"
#include "kernels/gemm/gemm.h"
#include "models/recipe/recipe.h"
#include "tests/kernels/gpu.h"
#include "tests/models/training/small_runs.h"

namespace tilewave {
namespace {

template <class Function>
std::string message_of(Function&& function) {
  try {
    function();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

std::vector<std::string> names_of(const std::vector<Setting>& settings) {
  std::vector<std::string> names;
  for (const Setting& setting : settings) names.push_back(setting.name);
  return names;
}

TEST(AblationSwitches, MakeEveryCombinationAndKnowItsBaseline) {
  const auto switches =
      parse_switches("pad_vocabulary_to=1,8  gemm.engine=in_house,cublaslt batch.source_tokens+batch.target_tokens=48,50");
  ASSERT_EQ(switches.size(), 3U);
  EXPECT_EQ(switches[0].keys, std::vector<std::string>{"guidelines.pad_vocabulary_to"});
  EXPECT_EQ(switches[2].keys, (std::vector<std::string>{"batch.source_tokens", "batch.target_tokens"}));
  const std::vector<Setting> settings = settings_of(switches);
  ASSERT_EQ(settings.size(), 8U);
  EXPECT_EQ(settings[0].name, "pad_vocabulary_to=1 engine=in_house batch.source_tokens+batch.target_tokens=48");
  EXPECT_EQ(settings[7].name, "pad_vocabulary_to=8 engine=cublaslt batch.source_tokens+batch.target_tokens=50");
  EXPECT_EQ(settings[5].overrides, (std::vector<std::string>{"guidelines.pad_vocabulary_to=8", "gemm.engine=in_house",
                                                             "batch.source_tokens=50", "batch.target_tokens=50"}));
  for (std::size_t i = 0; i < settings.size(); ++i) EXPECT_EQ(settings[i].baseline, i % 4);
}

TEST(AblationSwitches, WithoutAnyEachGuidelineStandsAlone) {
  const std::vector<Setting> settings = settings_of({});
  EXPECT_EQ(names_of(settings), (std::vector<std::string>{"none", "pad_vocabulary_to=8", "batch_multiple_of=8", "wave_free_batch=nearest",
                                                          "row_pitch=aligned", "all"}));
  for (const Setting& setting : settings) EXPECT_EQ(setting.baseline, 0U);
  const Recipe none = with_setting(small_recipe(), settings.front()), all = with_setting(small_recipe(), settings.back());
  EXPECT_EQ(none.guidelines.row_pitch, PitchPolicy::packed);
  EXPECT_EQ(none.name, small_recipe().name);
  EXPECT_EQ(all.guidelines.pad_vocabulary_to, 8);
  EXPECT_EQ(all.guidelines.wave_free_batch, WaveFreeBatch::nearest);
}

TEST(AblationSwitches, OfPicturesAreTheGuidelinesThatPicturesHave) {
  EXPECT_EQ(names_of(settings_of({}, small_classifier().model)),
            (std::vector<std::string>{"none", "batch_multiple_of=8", "row_pitch=aligned", "all"}));
  EXPECT_EQ(names_of(settings_of({}, small_captioner().model)),
            (std::vector<std::string>{"none", "pad_vocabulary_to=8", "row_pitch=aligned", "all"}));
}

TEST(AblationSwitches, WhatIsNoneIsASentence) {
  EXPECT_EQ(message_of([] { parse_switches("pad_vocabulary=1,8"); }),
            "--switch pad_vocabulary: there is no such key in [guidelines] or [gemm]; did you mean guidelines.pad_vocabulary_to?");
  EXPECT_EQ(message_of([] { parse_switches("batch.target_token=1,8"); }),
            "--switch batch.target_token: there is no such key; did you mean batch.target_tokens?");
  for (const char* text : {"pad_vocabulary_to", "pad_vocabulary_to=", "=1,8"}) {
    EXPECT_EQ(message_of([&] { parse_switches(text); }),
              concat("--switch ", text, ": write key=value,value, as in pad_vocabulary_to=1,8."));
  }
  EXPECT_EQ(message_of([] { parse_switches("pad_vocabulary_to=1,8 row_pitch=packed,aligned pad_vocabulary_to=1,64"); }),
            "--switch pad_vocabulary_to: a key is switched once, with all of its values, as in pad_vocabulary_to=1,8,64.");
  EXPECT_EQ(message_of([] { parse_switches("pad_vocabulary_to=1,,8"); }),
            "--switch pad_vocabulary_to=1,,8: every value must be there, and be there once.");
  EXPECT_EQ(message_of([] { parse_switches("pad_vocabulary_to=8,8"); }),
            "--switch pad_vocabulary_to=8,8: every value must be there, and be there once.");
  EXPECT_EQ(message_of([] { settings_of(parse_switches("pad_vocabulary_to=1,2,3,4,5,6 batch_multiple_of=1,2,3,4,5,6")); }),
            "the switches make more than 32 combinations; leave out some of their values.");
}

TEST(AblationToy, KeepsWhatIsBeyondAMultipleOfEight) {
  Recipe recipe = small_recipe({"model.d_model=1024", "model.d_ff=4096", "model.heads=16", "model.vocabulary=33708",
                                "model.encoder_layers=6", "batch.source_tokens=4096", "batch.target_tokens=4095", "run.precision=bf16"});
  const ToyRecipe toy = toy_sized(recipe);
  EXPECT_EQ(toy.recipe.model.d_model, 128);
  EXPECT_EQ(toy.recipe.model.d_ff, 512);
  EXPECT_EQ(toy.recipe.model.heads, 2);
  EXPECT_EQ(toy.recipe.model.encoder_layers, 2);
  EXPECT_EQ(toy.recipe.model.vocabulary, 2108);
  EXPECT_EQ(toy.recipe.batch.source_tokens, 512);
  EXPECT_EQ(toy.recipe.batch.target_tokens, 511);
  EXPECT_EQ(toy.recipe.run.precision, Precision::fp32);
  EXPECT_NE(std::find(toy.changes.begin(), toy.changes.end(), "model.vocabulary = 2108, where the recipe says 33708"), toy.changes.end());
  recipe.model.vocabulary = 33712;
  EXPECT_EQ(toy_sized(recipe).recipe.model.vocabulary, 2112);
  EXPECT_NO_THROW(validate(toy.recipe));
}

// The ids of a token file stay what they are.
TEST(AblationToy, KeepsTheVocabularyOfATokenFile) {
  const ToyRecipe toy =
      toy_sized(small_recipe({"data.kind=tokens", "data.source=tokens.bin", "model.vocabulary=50257", "model.architecture=decoder_only",
                              "model.encoder_layers=0", "batch.source_tokens=0", "batch.target_tokens=4096"}));
  EXPECT_EQ(toy.recipe.model.vocabulary, 50257);
}

TEST(AblationToy, HasFewerPictures) {
  const ToyRecipe toy = toy_sized(small_classifier({"batch.pictures=260", "model.encoder_layers=12", "run.precision=bf16"}));
  EXPECT_EQ(toy.recipe.batch.pictures, 36);
  EXPECT_EQ(toy.recipe.model.encoder_layers, 2);
  EXPECT_EQ(toy.recipe.run.precision, Precision::fp32);
  EXPECT_NO_THROW(validate(toy.recipe));
}

class Ablating : public testing::Test {
 protected:
  static AblationReport report_of(const Recipe& recipe, const std::string& switches, std::int64_t steps = 3) {
    return ablate({.recipe = recipe,
                   .settings = settings_of(parse_switches(switches)),
                   .steps = steps,
                   .timing = {.load_s = 0.0, .block_s = 0.001, .screening_blocks = 1, .rounds = 3, .finalists = kMaxSettings},
                   .queue = make_cpu_queue(2),
                   .device = probe_cpu(2)});
  }
};

// Pitch keeps every bit of a model that sees; a multiple of 8 pictures is the same loss on frozen weights, to batch normalization another
// model.
TEST_F(Ablating, PicturesKeepTheirLoss) {
  const std::vector<std::string> few = {"batch.pictures=12", "batch.accumulate=1", "model.d_model=20"};
  const AblationReport report = report_of(small_classifier(few), "batch_multiple_of=1,8 row_pitch=packed,aligned");
  ASSERT_EQ(report.variants.size(), 4U);
  EXPECT_TRUE(report.of_pictures);
  EXPECT_TRUE(report.holds());
  const std::vector<AblationVariant>& variants = report.variants;
  EXPECT_EQ(variants[0].target_tokens, 12);
  EXPECT_EQ(variants[2].target_tokens, 16);
  EXPECT_EQ(variants[2].resolved.shapes.source_rows, 16 * 16);
  EXPECT_TRUE(variants[2].same_loss.holds());
  EXPECT_EQ(variants[2].same_loss.how, "12 pictures, weights frozen");
  const AblationReport pitches = report_of(small_classifier(few), "row_pitch=packed,aligned");
  EXPECT_EQ(pitches.variants[1].same_loss.verdict, SameLoss::Verdict::same_bits);

  std::vector<std::string> normalized = few;
  normalized.insert(normalized.end(), {"model.stem=convolution", "model.patch=4"});
  const AblationReport together = report_of(small_classifier(normalized), "batch_multiple_of=1,8");
  EXPECT_EQ(together.variants[1].same_loss.verdict, SameLoss::Verdict::another_model);
  EXPECT_EQ(together.variants[1].same_loss.how, "batch.pictures");
  normalized.emplace_back("model.stem_norm=layer_norm");
  const AblationReport apart = report_of(small_classifier(normalized), "batch_multiple_of=1,8");
  EXPECT_EQ(apart.variants[1].same_loss.how, "12 pictures, weights frozen");
  EXPECT_TRUE(apart.holds());
}

TEST_F(Ablating, CaptionsKeepTheirLoss) {
  const AblationReport report =
      report_of(small_captioner({"model.vocabulary=265", "model.d_model=20"}), "pad_vocabulary_to=1,8 row_pitch=packed,aligned");
  EXPECT_FALSE(report.of_pictures);
  for (const AblationVariant& variant : report.variants) EXPECT_TRUE(variant.same_loss.holds()) << variant.setting.name;
  EXPECT_EQ(report.variants[2].resolved.shapes.vocabulary_padded, 272);
}

TEST_F(Ablating, PaddingAndPitchKeepEveryBit) {
  const AblationReport report = report_of(small_recipe(), "pad_vocabulary_to=1,8 row_pitch=packed,aligned");
  ASSERT_EQ(report.variants.size(), 4U);
  EXPECT_TRUE(report.holds());
  const AblationVariant &plain = report.variants[0], &padded = report.variants[2];
  EXPECT_EQ(plain.same_loss.verdict, SameLoss::Verdict::itself);
  EXPECT_EQ(report.variants[1].same_loss.verdict, SameLoss::Verdict::itself);
  EXPECT_EQ(padded.setting.baseline, 0U);
  EXPECT_EQ(padded.resolved.shapes.vocabulary_padded, 64);
  EXPECT_EQ(padded.same_loss.verdict, SameLoss::Verdict::same_bits);
  EXPECT_EQ(padded.curve.losses, plain.curve.losses);
  EXPECT_EQ(padded.curve.gradient_norms, plain.curve.gradient_norms);
  EXPECT_EQ(plain.target_tokens, 50);
  for (const AblationVariant& variant : report.variants) {
    EXPECT_GT(variant.step.median_s, 0.0) << variant.setting.name;
    EXPECT_LE(variant.step.lower_quartile_s, variant.step.median_s);
    EXPECT_GT(variant.memory_bytes, 0);
    EXPECT_GT(variant.gemm_error().value(), 0.0);
  }
  // Each round's own gain counts; the gain itself lies in its interval, and three rounds show nothing at 95 %.
  ASSERT_TRUE(padded.gain_interval);
  EXPECT_EQ(padded.step.rounds_s.size(), 3U);
  EXPECT_LE(padded.gain_interval->low, *padded.measured_gain);
  EXPECT_GE(padded.gain_interval->high, *padded.measured_gain);
  for (std::size_t round = 0; round < 3; ++round) {
    const double gain = plain.step.rounds_s[round] / padded.step.rounds_s[round] - 1.0;
    EXPECT_LE(padded.gain_interval->low, gain);
    EXPECT_GE(padded.gain_interval->high, gain);
  }
  EXPECT_DOUBLE_EQ(padded.gain_interval->confidence, 0.75);
  EXPECT_TRUE(padded.gain_interval->within_noise());
  EXPECT_FALSE((GainInterval{.low = 0.01, .high = 0.02, .confidence = 0.96}).within_noise());
  EXPECT_FALSE((GainInterval{.low = -0.02, .high = -0.01, .confidence = 0.96}).within_noise());
  EXPECT_TRUE((GainInterval{.low = -0.01, .high = 0.02, .confidence = 0.96}).within_noise());
  // The projection is concerned, the layers below it are not.
  for (const GemmTimes& gemm : padded.gemms) {
    EXPECT_EQ(gemm.concerned, gemm.layer.ends_with("projection")) << gemm.layer << name_of(gemm.role);
    EXPECT_GT(gemm.measured_s, 0.0);
  }
  const double expected = plain.step.median_s / padded.step.median_s - 1.0;
  EXPECT_NEAR(padded.measured_gain.value(), expected, 1e-12);
}

TEST_F(Ablating, OtherBatchesAreComparedWithWeightsFrozen) {
  const AblationReport report =
      report_of(small_recipe({"run.precision=fp64"}), "batch_multiple_of=1,8 ffn_hidden_layout=token_major,feature_major");
  EXPECT_TRUE(report.holds());
  const AblationVariant& rounded = report.variants[2];
  EXPECT_EQ(rounded.resolved.shapes.target_rows, 56);
  EXPECT_EQ(rounded.same_loss.how, "50 target tokens, weights frozen");
  EXPECT_LE(rounded.same_loss.distance.gradient, 1e-12);
  EXPECT_EQ(rounded.same_loss.error_ratio, 0.0) << "fp64 is its own reference";
  const double tokens = static_cast<double>(rounded.target_tokens) / 50.0;
  EXPECT_NEAR(rounded.measured_gain.value(), tokens * report.variants[0].step.median_s / rounded.step.median_s - 1.0, 1e-12);
}

TEST_F(Ablating, ALossThatDivergesIsNotCompared) {
  const AblationReport report = report_of(small_recipe({"optimizer.learning_rate=1e30"}), "pad_vocabulary_to=1,8", 4);
  ASSERT_TRUE(std::isfinite(report.variants[0].curve.losses[0]));
  ASSERT_FALSE(std::isfinite(report.variants[0].curve.losses[3]));
  EXPECT_EQ(report.variants[1].same_loss.verdict, SameLoss::Verdict::not_compared);
  EXPECT_EQ(report.variants[1].same_loss.how, concat("its baseline's loss is not finite in step ", first_diverged(report.variants[0].curve),
                                                     "; lower optimizer.learning_rate, or take another run.precision"));
  EXPECT_EQ(report.variants[0].same_loss.verdict, SameLoss::Verdict::not_compared);
  EXPECT_EQ(report.variants[0].same_loss.how, concat("its loss", report.variants[1].same_loss.how.substr(strlen("its baseline's loss"))));
  EXPECT_FALSE(report.holds());
}

TEST_F(Ablating, ALossThatDivergesIsNoneToBeEqualTo) {
  const AblationReport report = report_of(small_recipe({"optimizer.learning_rate=1e30"}), "batch_multiple_of=1,5", 4);
  ASSERT_TRUE(report.variants[1].same_as.has_value());
  for (const AblationVariant& variant : report.variants) EXPECT_EQ(variant.same_loss.verdict, SameLoss::Verdict::not_compared);
  EXPECT_FALSE(report.holds());
}

TEST_F(Ablating, RowsTooShortForTheDataAreRefusedAndTheOthersRun) {
  for (const char* kind : {"number_names", "synthetic"}) {
    const Recipe recipe =
        small_recipe({concat("data.kind=", kind), "data.tokenizer=bytes", "model.vocabulary=260", "model.max_positions=64",
                      "batch.sequence=64", "batch.source_tokens=64", "batch.target_tokens=256"});
    const AblationReport report = report_of(recipe, "batch.sequence=64,1", 1);
    EXPECT_TRUE(report.variants[0].ran()) << kind << ": " << report.variants[0].refused;
    EXPECT_TRUE(report.variants[1].refused_input) << kind;
  }
}

TEST_F(Ablating, AnotherModelHasNoEqualLossToShow) {
  const AblationReport report = report_of(small_recipe(), "model.vocabulary=61,64");
  EXPECT_EQ(report.variants[1].same_loss.verdict, SameLoss::Verdict::another_model);
  EXPECT_EQ(report.variants[1].same_loss.how, "model.vocabulary");
}

// The launches are the same ones; what they compute is not.
TEST_F(Ablating, TheSameLaunchesOfAnotherModelProveNothing) {
  for (const char* other : {"optimizer.learning_rate=1e-3,1e-2", "model.dropout=0.1,0.5", "run.seed=1,2", "schedule.warmup_steps=1,10"}) {
    const AblationReport report = report_of(small_recipe(), other);
    EXPECT_FALSE(report.variants[1].same_as.has_value()) << other;
    EXPECT_EQ(report.variants[1].same_loss.verdict, SameLoss::Verdict::another_model) << other;
    EXPECT_NE(report.variants[1].curve.losses, report.variants[0].curve.losses) << other;
  }
}

// Whatever has the same launches, it is compared with its own baseline.
TEST_F(Ablating, EachIsComparedWithItsOwnBaseline) {
  const AblationReport models = report_of(small_recipe(), "model.vocabulary=61,64 alignment_policy=any,strict");
  const auto verdict_of = [](const AblationReport& report, std::size_t variant) { return report.variants[variant].same_loss.verdict; };
  ASSERT_EQ(models.variants.size(), 4U);
  EXPECT_EQ(models.variants[1].same_as, std::optional<std::size_t>(0));
  EXPECT_EQ(models.variants[3].same_as, std::optional<std::size_t>(2));
  for (std::size_t one = 0; one < 4; ++one) {
    const std::size_t baseline = models.variants[one].setting.baseline;
    EXPECT_EQ(verdict_of(models, one), baseline == one               ? SameLoss::Verdict::itself
                                       : (baseline < 2) == (one < 2) ? SameLoss::Verdict::same_bits
                                                                     : SameLoss::Verdict::another_model)
        << models.variants[one].setting.name;
  }
  // Rows, and not the alignment that tells nothing apart here, decide who is compared with whom.
  const AblationReport rows = report_of(small_recipe(), "batch_multiple_of=1,8,2 alignment_policy=any,strict");
  for (const AblationVariant& variant : rows.variants) {
    const AblationVariant& baseline = rows.baseline_of(variant);
    if (&variant == &baseline) continue;
    const bool same_rows = variant.resolved.shapes.target_rows == baseline.resolved.shapes.target_rows &&
                           variant.resolved.shapes.source_rows == baseline.resolved.shapes.source_rows;
    EXPECT_EQ(variant.same_loss.how,
              same_rows ? concat("the same launches as ", baseline.setting.name) : std::string("50 target tokens, weights frozen"))
        << variant.setting.name;
    EXPECT_TRUE(variant.same_loss.holds());
  }
}

TEST_F(Ablating, TheSameLaunchesAreMeasuredOnce) {
  const AblationReport report = report_of(small_recipe(), "batch_multiple_of=1,5,2");
  ASSERT_TRUE(report.variants[1].same_as.has_value());
  EXPECT_EQ(*report.variants[1].same_as, 0U);
  EXPECT_EQ(report.variants[1].measured_gain.value(), 0.0);
  EXPECT_FALSE(report.variants[2].same_as.has_value());  // 45 source rows became 46
}

TEST_F(Ablating, ABaselineThatDidNotRunLeavesNothingToCompareWith) {
  const AblationReport report = report_of(small_recipe(), "pad_vocabulary_to=0,1");
  EXPECT_FALSE(report.holds());
  ASSERT_TRUE(report.variants[1].ran());
  EXPECT_FALSE(report.variants[1].measured_gain.has_value());
  EXPECT_EQ(report.variants[1].same_loss.verdict, SameLoss::Verdict::not_compared);
  EXPECT_EQ(report.variants[1].same_loss.how, "its baseline did not run");
}

TEST_F(Ablating, WhatCannotRunSaysWhyAndTheOthersRun) {
  const AblationReport report = report_of(small_recipe(), "pad_vocabulary_to=1,0,-8,64 gemm.engine=in_house,cublaslt");
  EXPECT_FALSE(report.holds());
  EXPECT_TRUE(report.variants[0].ran());
  for (const std::size_t refused : {std::size_t{2}, std::size_t{4}}) {
    EXPECT_TRUE(report.variants[refused].refused_input);
    EXPECT_NE(report.variants[refused].refused.find("pad_vocabulary_to is the integer"), std::string::npos)
        << report.variants[refused].refused;
  }
  EXPECT_NE(report.variants[1].refused.find("gemm.engine = \"cublaslt\" needs a GPU"), std::string::npos) << report.variants[1].refused;
  EXPECT_TRUE(report.variants[6].ran());
  EXPECT_EQ(report.variants[6].same_loss.verdict, SameLoss::Verdict::same_bits);
}

// A CPU's memory ends too.
TEST_F(Ablating, WhatDoesNotFitSaysWhatWouldAndTheOthersKeepTheirLoss) {
  const AblationReport report =
      report_of(small_recipe({"model.d_ff=8192", "run.precision=fp64"}), "batch.source_tokens+batch.target_tokens=50,16777216,56");
  EXPECT_FALSE(report.holds());
  EXPECT_TRUE(report.variants[0].ran());
  EXPECT_FALSE(report.variants[1].ran());
  EXPECT_FALSE(report.variants[1].refused_input);
  EXPECT_NE(report.variants[1].refused.find(" GiB to give; --set batch.target_tokens="), std::string::npos) << report.variants[1].refused;
  EXPECT_TRUE(report.variants[2].ran());
  EXPECT_TRUE(report.variants[2].same_loss.holds());
}

TEST_F(Ablating, ANarrowerPrecisionIsShownInAWiderOneToo) {
  const AblationReport report = report_of(small_recipe(), "batch.target_tokens=50,56,57");
  EXPECT_TRUE(report.holds());
  for (const std::size_t i : {std::size_t{1}, std::size_t{2}}) {
    const SameLoss& same = report.variants[i].same_loss;
    EXPECT_EQ(same.how, "50 target tokens, weights frozen");
    EXPECT_EQ(same.reference, Precision::fp64);
    EXPECT_LE(same.mathematics.gradient, same.tolerance);
    EXPECT_LT(same.tolerance, 1e-12);
    EXPECT_GT(same.baseline.gradient, 1e-9) << "fp32 rounds";
    EXPECT_LT(same.baseline.gradient, 1e-4);
    EXPECT_GT(same.error_ratio, 0.0);
    EXPECT_LE(same.error_ratio, kNoWorse);
    EXPECT_LE(same.error_ratio, same.largest_ratio * (1.0 + 1e-12));
  }
}

// Without switches a guideline that has no answer leaves the rows as they are and says so; the others, and all of them, go on.
TEST_F(Ablating, AGuidelineWithoutAnAnswerLeavesTheOthersTheirs) {
  const Recipe narrow = small_recipe({"guidelines.wave_limit=0.01"});
  const AblationReport report = report_of(narrow, "");
  EXPECT_TRUE(report.holds());
  ASSERT_EQ(report.variants.size(), 6U);
  const AblationVariant &waves = report.variants[3], &all = report.variants[5];
  for (const AblationVariant* one : {&waves, &all}) {
    ASSERT_TRUE(one->ran()) << one->refused;
    const auto said = std::find_if(one->resolved.adjustments.begin(), one->resolved.adjustments.end(), [](const Adjustment& adjustment) {
      return adjustment.rule == "wave_free_batch" && adjustment.what == "target rows";
    });
    ASSERT_NE(said, one->resolved.adjustments.end());
    EXPECT_EQ(said->from, said->to);
    EXPECT_NE(said->why.find("; no number within 1.0 % fills whole waves"), std::string::npos) << said->why;
  }
  EXPECT_EQ(waves.same_as, std::optional<std::size_t>(0)) << "nothing was changed";
  EXPECT_EQ(all.resolved.shapes.vocabulary_padded, 64);
  EXPECT_EQ(all.resolved.shapes.target_rows, 56);
  EXPECT_EQ(all.resolved.recipe.guidelines.row_pitch, PitchPolicy::aligned);
  // Asked for by a person it is refused.
  const AblationReport asked = report_of(narrow, "wave_free_batch=off,nearest");
  EXPECT_TRUE(asked.variants[1].refused_input) << asked.variants[1].refused;
  // What else is wrong stays wrong: a layer that is not there.
  const AblationReport nowhere = report_of(small_recipe({"guidelines.wave_layer=nothing"}), "");
  EXPECT_TRUE(nowhere.variants[3].refused_input);
}

// Where blocks share a tile's K they begin and end where K and the number of tiles say; elsewhere zeros may follow K.
TEST(SameLoss, SharedSumsAreTheSameOfTheSameKAndTilesAlone) {
  struct Product {
    std::string_view kernel;
    int split = 1;
    bool streams_k = false;
    std::int64_t n = 4096, k = 50304, tiles = 96;
  };
  const auto same = [](const Product& a, const Product& b) {
    const auto traced = [](const Product& product) {
      GemmPlan plan{.composition = {.kernel = product.kernel},
                    .tile = {256, 128},
                    .split = product.split,
                    .blocks = 132,
                    .streams_k = product.streams_k};
      plan.tiling.tiles = product.tiles;
      TraceEntry entry;
      entry.operation = GemmArgs::kOperation;
      entry.gemm = GemmProblem{.m = 768, .n = product.n, .k = product.k};
      entry.plan = plan;
      Trace one;
      one.entries.push_back(entry);
      return one;
    };
    return same_sums(traced(a), traced(b));
  };
  for (const Product& shared : {Product{.kernel = "stream_k", .streams_k = true}, Product{.kernel = "unaligned", .split = 2}}) {
    Product longer = shared, wider = shared, more_tiles = shared;
    longer.k = 50432;
    wider.n = 4095;
    more_tiles.n = 4224;
    more_tiles.tiles = 99;
    EXPECT_TRUE(same(shared, wider)) << shared.kernel;
    EXPECT_FALSE(same(shared, longer)) << shared.kernel;
    EXPECT_FALSE(same(shared, more_tiles)) << shared.kernel;
  }
  EXPECT_TRUE(same({.kernel = "persistent"}, {.kernel = "persistent", .n = 4224, .k = 50432, .tiles = 99}));
}

// The proof itself can fail: gradients with a planted wrong term, in the precision of the run or in the reference's, and weights from
// another seed.
TEST(SameLoss, SeesWrongGradientsAndOtherWeights) {
  const auto wide = [](std::vector<std::string> overrides = {}) {
    overrides.emplace_back("run.precision=fp64");
    return small_recipe(overrides);
  };
  SmallRun right(small_recipe()), wrong(small_recipe()), rows(small_recipe({"batch.target_tokens=56"}));
  SmallRun reference(wide()), same_reference(wide()), rows_reference(wide({"batch.target_tokens=56"}));
  const StepTrace trace = trace_step(right.resolved, right.context.device());
  const auto compared = [&](SmallRun& ours, SmallRun& our_reference) {
    return compare_frozen({.ours = ours.step, .baseline = right.step, .our_reference = &our_reference.step, .reference = &reference.step},
                          trace, right.corpus);
  };
  EXPECT_EQ(compared(wrong, same_reference).verdict, SameLoss::Verdict::same_bits);
  EXPECT_TRUE(compared(rows, rows_reference).holds());

  wrong.context.plant("feed_forward");
  const SameLoss planted = compared(wrong, same_reference);
  EXPECT_EQ(planted.verdict, SameLoss::Verdict::differs);
  EXPECT_EQ(planted.distance.loss, 0.0);
  EXPECT_EQ(planted.mathematics.gradient, 0.0);
  EXPECT_GT(planted.distance.gradient, 1e-3);
  EXPECT_GT(planted.largest_ratio, kNoOutlier);
  EXPECT_FALSE(planted.distance.worst.empty());
  EXPECT_EQ(compare_frozen({.ours = wrong.step, .baseline = right.step}, trace, right.corpus).verdict, SameLoss::Verdict::differs);

  rows_reference.context.plant("feed_forward");
  const SameLoss other_mathematics_planted = compared(rows, rows_reference);
  EXPECT_EQ(other_mathematics_planted.verdict, SameLoss::Verdict::differs);
  EXPECT_LE(other_mathematics_planted.error_ratio, kNoWorse);
  EXPECT_GT(other_mathematics_planted.mathematics.gradient, other_mathematics_planted.tolerance);
  EXPECT_THROW(compare_frozen({.ours = rows.step, .baseline = right.step, .reference = &reference.step}, trace, right.corpus), Error);

  SmallRun other(small_recipe({"run.seed=2"}));
  const LossCurve ours = run_steps(other.step, right.corpus, 2), baseline = run_steps(right.step, right.corpus, 2);
  EXPECT_EQ(compare_bits({.ours = ours, .baseline = baseline}).verdict, SameLoss::Verdict::differs);
  EXPECT_EQ(compare_bits({.ours = baseline, .baseline = baseline}).verdict, SameLoss::Verdict::same_bits);
  SameLoss frozen{.verdict = SameLoss::Verdict::within_tolerance};
  compare_curves({.ours = baseline, .baseline = baseline}, Precision::fp32, trace, frozen);
  EXPECT_TRUE(frozen.holds());
  compare_curves({.ours = ours, .baseline = baseline}, Precision::fp32, trace, frozen);
  EXPECT_FALSE(frozen.holds());
  EXPECT_EQ(other_mathematics(right.resolved.recipe, other.resolved.recipe), "run.seed");
}

// Keys too large for their gradients to be finite, which no query sees: the losses are the same, and later parameters' gradients too.
TEST(SameLoss, NoLaterGradientMakesUpForOneThatIsNoNumber) {
  const Recipe recipe = small_recipe({"run.precision=fp64", "model.dropout=0", "model.attention_dropout=0"});
  SmallRun ours(recipe), baseline(recipe);
  for (SmallRun* run : {&ours, &baseline}) {
    const Parameter& qkv = *run->step.model().parameters().find("decoder.0.self_attention.qkv.weight");
    write_elements(run->context, qkv.master.slice_rows(0, 32), [](auto, auto) { return 0.0; });
    if (run == &ours)
      write_elements(run->context, qkv.master.slice_rows(32, 32), [](auto i, auto j) { return ((i * 7 + j * 3) % 5 - 2) * 1e305; });
    run->step.model().parameters().refresh_compute_copies();
    run->context.write_step_state({.loss_scale = 0x1p36});
  }
  const SameLoss same =
      compare_frozen({.ours = ours.step, .baseline = baseline.step}, trace_step(ours.resolved, ours.context.device()), ours.corpus);
  EXPECT_EQ(same.distance.loss, 0.0);
  EXPECT_TRUE(std::isnan(same.distance.gradient));
  EXPECT_FALSE(same.distance.worst.empty());
  EXPECT_EQ(same.verdict, SameLoss::Verdict::differs);
}

// A variant need not be nearer to the reference than the baseline is: here that has other weights, and is far from both.
TEST(SameLoss, AsFarFromTheReferenceAsTheBaselineIsNoDifference) {
  SmallRun ours(small_recipe()), baseline(small_recipe()), far(small_recipe({"run.precision=fp64", "run.seed=2"}));
  const StepTrace trace = trace_step(baseline.resolved, baseline.context.device());
  const auto compared = [&](SmallRun& variant) {
    return compare_frozen({.ours = variant.step, .baseline = baseline.step, .our_reference = &far.step, .reference = &far.step}, trace,
                          baseline.corpus);
  };
  const SameLoss same = compared(ours);
  EXPECT_GT(same.ours.loss, 1e-5);
  EXPECT_EQ(same.ours.loss, same.baseline.loss);
  EXPECT_EQ(same.verdict, SameLoss::Verdict::same_bits);
  SmallRun other(small_recipe({"run.seed=3"}));
  const SameLoss farther = compared(other);
  ASSERT_GT(farther.ours.loss, 1.001 * farther.baseline.loss) << "take another seed";
  EXPECT_EQ(farther.verdict, SameLoss::Verdict::differs);
}

TEST(SameLoss, ToleranceGrowsWithRoundingAndK) {
  EXPECT_DOUBLE_EQ(rounding_tolerance(DType::f32, 4096), std::ldexp(64.0 + 8.0 * 64.0, -24));
  EXPECT_LT(rounding_tolerance(DType::f64, 1 << 20), 1e-11);
  EXPECT_EQ(reference_precision(small_recipe({"run.precision=bf16", "model.activation=gelu_tanh"})), Precision::fp32);
  EXPECT_EQ(reference_precision(small_recipe({"run.precision=fp32", "model.activation=gelu_tanh"})), Precision::fp64);
  EXPECT_EQ(reference_precision(small_recipe({"run.precision=bf16", "model.activation=relu"})), Precision::fp64);
  const Recipe reference = reference_of(small_recipe({"run.precision=bf16", "model.activation=gelu_erf", "gemm.alignment_policy=strict"}));
  EXPECT_EQ(reference.run.precision, Precision::fp32);
  EXPECT_EQ(reference.gemm, GemmConfig{});
}

class GpuAblation : public testing_support::GpuTest {};

TEST_F(GpuAblation, WhatDoesNotFitSaysSoAndTheOthersKeepTheirLoss) {
  const AblationReport report =
      ablate({.recipe = small_recipe({"run.precision=bf16", "model.d_ff=4096"}),
              .settings = settings_of(parse_switches("batch.source_tokens+batch.target_tokens=50,56,16000000 pad_vocabulary_to=1,8")),
              .steps = 3,
              .timing = {.load_s = 0.0, .block_s = 0.001, .screening_blocks = 1, .rounds = 3, .finalists = kMaxSettings},
              .queue = queue_,
              .device = device_});
  EXPECT_FALSE(report.holds());
  for (std::size_t i = 0; i < report.variants.size(); ++i) {
    const AblationVariant& variant = report.variants[i];
    EXPECT_EQ(variant.ran(), i < 4) << variant.refused;
    EXPECT_FALSE(variant.refused_input);
    EXPECT_TRUE(variant.same_loss.holds()) << variant.setting.name << " " << variant.same_loss.error_ratio;
    if (variant.ran()) {
      EXPECT_GT(variant.step.median_s, 0.0);
    } else {
      EXPECT_NE(variant.refused.find("GiB"), std::string::npos) << variant.refused;
    }
  }
}

}  // namespace
}  // namespace tilewave
