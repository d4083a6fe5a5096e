// What a student is told of one GEMM or layer: better sizes, the batch of the crossover, whole waves, multiples; of other operations; and
// how far predicted steps may be off, which docs/results' ablations hold.
#include "models/planning/gemm_answer.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "kernels/core/error.h"
#include "kernels/gemm/catalog.h"
#include "models/planning/operation_answer.h"
#include "models/planning/step_error.h"
#include "tests/models/planning/problems.h"
#include "tests/repository_root.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;

GemmQuestion asked(AskedAs as, const LayerGemm& layer, std::string_view key, PitchPolicy pitch = PitchPolicy::packed) {
  return {.as = as, .layer = layer, .precision = Precision::fp16, .pitch = pitch, .plan = [&gpu = device(key)](const GemmProblem& problem) {
            return choose(problem, gpu);
          }};
}

const BetterSize* find(const std::vector<BetterSize>& all, AskedSize size, bool larger) {
  const auto found = std::ranges::find_if(all, [&](const BetterSize& one) { return one.size == size && (one.to > one.from) == larger; });
  return found == all.end() ? nullptr : &*found;
}

// The guide's first step on its own GPU, as an answer: four padding tokens.
TEST(GemmAnswer, AVocabularyIsPaddedAndNeverCut) {
  const std::vector<BetterSize> better = better_sizes(asked(AskedAs::gemm, {.out = 33708, .in = 1024, .tokens = 5120}, "v100"));
  const BetterSize* const padded = find(better, AskedSize::out, true);
  ASSERT_NE(padded, nullptr);
  EXPECT_EQ(padded->to, 33712);
  EXPECT_GT(padded->rate_gain, 0.3);
  EXPECT_GT(padded->time_gain, 0.2) << "more to do in less time";
  for (const std::int64_t vocabulary : {50257, 50304, 33708, 33712, 32000, 151936}) {
    for (const char* key : {"v100", "a100", "rtx4090", "h200"}) {
      const GemmQuestion question = asked(AskedAs::layer, {.out = vocabulary, .in = 768, .tokens = 4096}, key);
      EXPECT_EQ(find(better_sizes(question), AskedSize::out, false), nullptr) << vocabulary << " on " << key;
    }
  }
  // An aligned pitch leaves nothing to pad for.
  const auto aligned = better_sizes(asked(AskedAs::gemm, {.out = 33708, .in = 1024, .tokens = 5120}, "v100", PitchPolicy::aligned));
  EXPECT_EQ(find(aligned, AskedSize::out, true), nullptr);
}

// One column past a tile costs a column of tiles, and the size before it is told.
TEST(GemmAnswer, OneColumnPastATileIsWorthTakingBack) {
  const std::vector<BetterSize> better = better_sizes(asked(AskedAs::gemm, {.out = 2304, .in = 4096, .tokens = 257}, "a100"));
  const BetterSize* const less = find(better, AskedSize::tokens, false);
  ASSERT_NE(less, nullptr);
  EXPECT_EQ(less->to, 256);
  EXPECT_GT(less->rate_gain, 0.1);
  const BetterSize* const more = find(better, AskedSize::tokens, true);
  ASSERT_NE(more, nullptr);
  EXPECT_LE(more->to, 320);
}

// Whatever is asked, an answer gains what it says when it is planned, and stays near.
TEST(GemmAnswer, GainsAreThoseOfThePlans) {
  std::size_t answers = 0;
  for (const char* key : {"v100", "a100", "h200", "rtx5090"}) {
    for (const LayerGemm& layer : {LayerGemm{.out = 4100, .in = 1000, .tokens = 2500}, LayerGemm{.out = 999, .in = 4095, .tokens = 33}}) {
      const GemmQuestion question = asked(AskedAs::layer, layer, key);
      const auto rate = [&](const LayerGemm& sizes) {
        GemmQuestion other = question;
        other.layer = sizes;
        double flops = 0.0, seconds = 0.0;
        for (const GemmRole role : other.roles()) {
          const GemmProblem problem = other.problem(role);
          flops += static_cast<double>(problem.flops()), seconds += choose(problem, device(key)).predicted_s;
        }
        return flops / seconds;
      };
      for (const BetterSize& one : better_sizes(question)) {
        ++answers;
        LayerGemm changed = layer;
        (one.size == AskedSize::out ? changed.out : one.size == AskedSize::in ? changed.in : changed.tokens) = one.to;
        EXPECT_NEAR(rate(changed) / rate(layer) - 1.0, one.rate_gain, 1e-9) << key;
        EXPECT_GE(one.rate_gain, 0.005);
        EXPECT_LE(one.to, std::max(one.from * 9 / 8, round_up(one.from + 1, 256)));
        EXPECT_GE(one.to, one.from - one.from / 8);
      }
    }
  }
  EXPECT_GE(answers, 8U);
}

TEST(GemmAnswer, MathLimitsFromTheFirstBatchWhoseBytesAreFew) {
  for (const auto& [key, batch] : {std::pair{"v100", 149}, {"a100", 166}, {"h200", 230}}) {
    EXPECT_EQ(math_limited_from(gemm(4096, 1, 4096), device(key)), batch) << key;
    const double ratio = ops_per_byte(device(key), DType::f16, MathMode::ieee);
    const auto intensity_at = [](std::int64_t n) {
      const GemmProblem problem = gemm(4096, n, 4096);
      return intensity({.flops = problem.flops(), .bytes = problem.bytes()});
    };
    EXPECT_GT(intensity_at(batch), ratio);
    EXPECT_LE(intensity_at(batch - 1), ratio);
  }
  EXPECT_EQ(math_limited_from(gemm(128, 1, 128), device("h200")), std::nullopt) << "however long the batch";
  EXPECT_EQ(math_limited_from(gemm(4096, 1, 4096), DeviceInfo{}), std::nullopt) << "nothing is known of it";
}

TEST(GemmAnswer, WavesArePeriodic) {
  EXPECT_EQ(columns_of_whole_waves(80, 16), 5);
  EXPECT_EQ(columns_of_whole_waves(132, 16), 33);
  const GemmPlan plan{.tile = {256, 128}, .tiling = tile_waves(4096, 2560, {256, 128}, 80)};
  EXPECT_EQ(period_of_whole_waves(plan), 640);
  GemmPlan parts = plan;
  parts.split = 5;
  EXPECT_EQ(period_of_whole_waves(parts), 128) << "80 parts a column";
  parts.streams_k = true;
  EXPECT_EQ(period_of_whole_waves(parts), std::nullopt);
}

TEST(GemmAnswer, MultiplesAreTheGuides) {
  EXPECT_EQ(advised_multiple(DType::f16, device("v100")).best, 8);
  EXPECT_EQ(advised_multiple(DType::f16, device("a100")).least, 8);
  EXPECT_EQ(advised_multiple(DType::f16, device("a100")).best, 64);
  EXPECT_EQ(advised_multiple(DType::f32, device("h200")).best, 32);
  EXPECT_EQ(advised_multiple(DType::f64, device("a100")).best, 16);
}

// The guide's own figure stands beside its own shape on its own GPU, and nowhere else.
TEST(GemmAnswer, TheGuidesOwnRateStandsBesideItsShape) {
  EXPECT_NE(guides_own_rate(gemm(1024, 8192, 4096), device("a100")).find("about 250 TFLOP/s"), std::string::npos);
  EXPECT_NE(guides_own_rate(gemm(1024, 8192, 4096), device("v100")).find("more than 90 TFLOP/s"), std::string::npos);
  EXPECT_EQ(guides_own_rate(gemm(1024, 64, 4096), device("a100")), "");
  EXPECT_EQ(guides_own_rate(gemm(1024, 8192, 4096), device("h200")), "");
  EXPECT_EQ(guides_own_rate(gemm(4096, 5120, 1024), device("v100")), "") << "of the activation gradient alone";
}

TEST(OperationAnswer, BytesBoundALargeOneAndTheLaunchASmallOne) {
  const OperationAnswer relu = answer({.name = "relu", .shape = {65536, 4096}}, device("v100"));
  EXPECT_EQ(relu.cost.flops, 65536 * 4096);
  EXPECT_EQ(relu.cost.bytes, 4 * 65536 * 4096);
  EXPECT_EQ(relu.limit, Limit::memory);
  EXPECT_NEAR(relu.floor_s, 4.0 * 65536 * 4096 / 900e9, 1e-12);
  EXPECT_GT(relu.predicted_s, relu.floor_s);
  EXPECT_FALSE(relu.fused.empty());
  EXPECT_EQ(answer({.name = "relu", .shape = {8, 64}}, device("v100")).limit, Limit::launch);
  const OperationAnswer own = answer({.name = "layer_norm"}, device("h200"));
  EXPECT_EQ(own.shape, (Shape{65536, 1024}));
  EXPECT_TRUE(own.fused.empty());
  EXPECT_EQ(answer({.name = "softmax", .shape = {8, 8}}, DeviceInfo{}).limit, Limit::unknown);
}

TEST(OperationAnswer, WhatIsNoOperationIsASentenceWithAll) {
  const auto refusal = [](const OperationQuestion& question) -> std::string {
    try {
      (void)answer(question, device("h200"));
    } catch (const InputError& error) {
      return error.what();
    }
    return "nothing";
  };
  const std::string sentence = refusal({.name = "layernorm"});
  EXPECT_NE(sentence.find("there is no operation called layernorm (did you mean layer_norm?); there are "), std::string::npos) << sentence;
  for (const char* name : {"softmax", "relu", "gelu", "dropout", "adamw", "cross_entropy"}) {
    EXPECT_NE(sentence.find(name), std::string::npos) << name;
    EXPECT_GT(answer({.name = name}, device("h200")).predicted_s, 0.0) << name;
  }
  EXPECT_NE(refusal({.name = "relu", .shape = {1 << 25, 1}}).find("at most 16777216 rows"), std::string::npos);
  EXPECT_NE(refusal({.name = "relu", .shape = {1 << 20, 1 << 30}}).find("elements are planned"), std::string::npos);
}

// The error that plan tells is the largest of the steps that docs/results has, by tilewave's own kernels.
TEST(StepErrors, AreThoseOfTheStoredAblations) {
  const auto largest = [](const char* folder, std::size_t least_steps) {
    double error = 0.0;
    std::size_t steps = 0;
    for (const fs::directory_entry& entry : fs::directory_iterator(root() / "docs/results" / folder)) {
      if (entry.path().extension() != ".json") continue;
      std::ifstream stream(entry.path());
      const nlohmann::json ablation = nlohmann::json::parse(stream);
      for (const nlohmann::json& variant : ablation.at("variants")) {
        const auto predicted = variant.value("step_predicted_us", nlohmann::json());
        if (!variant.at("ran").get<bool>() || !predicted.is_number() || variant.at("step_us").is_null()) continue;
        ++steps;
        error = std::max(error, std::abs(predicted.get<double>() / variant.at("step_us").get<double>() - 1.0));
      }
    }
    EXPECT_GE(steps, least_steps) << folder;
    return error;
  };
  if (!fs::exists(root() / "docs/results")) GTEST_SKIP() << "the results are not beside --data";
  const double h200 = largest("guidelines-h200", 17), h100 = largest("guidelines-h100", 2);
  EXPECT_LE(h200, kErrorWhereMeasured);
  EXPECT_GE(h200, kErrorWhereMeasured - 0.005);
  EXPECT_LE(h100, kErrorWhereScaled);
  EXPECT_GE(h100, kErrorWhereScaled - 0.005);
}

TEST(StepErrors, AreToldWhereStepsWereMeasured) {
  StepPlan step;
  step.gemms.push_back({.layer = "x", .problem = gemm(4096, 4096, 1024), .plan = choose(gemm(4096, 4096, 1024), device("h200"))});
  EXPECT_EQ(step_error(device("h200"), step).fraction, kErrorWhereMeasured);
  EXPECT_EQ(step_error(device("h100-sxm"), step).fraction, kErrorWhereScaled);
  EXPECT_TRUE(std::isnan(step_error(device("a100"), step).fraction));
  step.gemms.front().plan = choose(gemm(4096, 4096, 1024), device("v100"));
  EXPECT_TRUE(std::isnan(step_error(device("v100"), step).fraction));
}

}  // namespace
}  // namespace tilewave
