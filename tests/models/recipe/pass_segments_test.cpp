// Attention's work is that of a batch's own segments: a trace counts what a real batch holds, batch.sequence being a bound alone; where
// nobody knows lengths, that is said.
#include "models/recipe/pass_segments.h"

#include <cstdio>
#include <fstream>
#include <gtest/gtest.h>

#include "kernels/core/device_profiles.h"
#include "models/planning/advice.h"
#include "models/planning/predicted_settings.h"
#include "models/planning/resolve.h"
#include "tests/models/training/small_runs.h"
#include "tests/shell.h"

namespace tilewave {
namespace {

std::string line_of(std::size_t bytes, int i) {
  char number[16];
  std::snprintf(number, sizeof number, "%05d", i);
  std::string line = number;
  while (line.size() < bytes) line += static_cast<char>('a' + line.size() % 26);
  return line.substr(0, bytes);
}

class PassSegmentsOf : public testing::Test {
 protected:
  // Pairs of so many source bytes and target bytes; a target takes a row more.
  std::vector<std::string> pairs(std::size_t source, std::size_t target, std::int64_t rows, std::int64_t sequence) {
    std::ofstream sources(folder_.path() / "text.src"), targets(folder_.path() / "text.tgt");
    for (int i = 0; i < 400; ++i) {
      sources << line_of(source, i) << '\n';
      targets << line_of(target, i) << '\n';
    }
    return {"data.kind=parallel",
            "data.tokenizer=bytes",
            "data.source=" + (folder_.path() / "text.src").string(),
            "data.target=" + (folder_.path() / "text.tgt").string(),
            "model.vocabulary=260",
            "model.max_positions=4096",
            "model.encoder_layers=2",
            concat("batch.source_tokens=", rows),
            concat("batch.target_tokens=", rows),
            concat("batch.sequence=", sequence)};
  }
  std::vector<std::string> text(std::size_t bytes, std::int64_t rows, std::int64_t sequence) {
    std::ofstream(folder_.path() / "text.txt") << line_of(bytes, 1);
    std::vector<std::string> all = kDecoderOnly;
    for (std::string& key : std::vector<std::string>{"data.kind=text", "data.tokenizer=bytes", "model.vocabulary=260",
                                                     "data.source=" + (folder_.path() / "text.txt").string(), "model.max_positions=4096",
                                                     concat("batch.target_tokens=", rows), concat("batch.sequence=", sequence)}) {
      all.push_back(std::move(key));
    }
    return all;
  }

  static ResolvedRecipe resolved(const Recipe& recipe) {
    RealTokenCounter tokens(recipe);
    return resolve(recipe, {}, device_profile("h200").device, tokens);
  }

  static std::int64_t attention_flops(const StepTrace& trace) {
    std::int64_t flops = 0;
    for (const TraceEntry& entry : trace.trace.entries) flops += entry.attention ? entry.times * entry.cost.flops : 0;
    return flops;
  }

  // 4 forward and 10 backward for each pair of a query and a key and each column, half of them where a mask hides half.
  static std::int64_t literal_flops(const ModelConfig& model, const Batch& batch) {
    std::int64_t source = 0, target = 0, cross = 0;
    for (std::size_t i = 0; i < batch.target_lengths.size(); ++i) {
      const std::int64_t q = batch.target_lengths[i], k = batch.source_lengths.empty() ? 0 : batch.source_lengths[i];
      source += k * k;
      target += q * q;
      cross += q * k;
    }
    return 14 * model.d_model * (model.encoder_layers * source + model.decoder_layers * cross) +
           7 * model.d_model * model.decoder_layers * target;
  }
  static Batch batch_of(const ResolvedRecipe& resolved) { return *corpus_of(resolved.recipe).training(batch_shape(resolved)).next(); }

  TemporaryFolder folder_;
};

// 1,010 rows hold 50 pairs of 20 and 20 rows; ten rows of either side are padding rows.
TEST_F(PassSegmentsOf, PairsAreThoseOfARealBatchWhateverTheBound) {
  std::optional<StepPlan> first;
  for (const std::int64_t sequence : {20, 100, 1000}) {
    const ResolvedRecipe pass = resolved(small_recipe(pairs(20, 19, 1010, sequence)));
    const Batch batch = batch_of(pass);
    ASSERT_EQ(batch.target_lengths.size(), 50U);
    ASSERT_EQ(pass.segments, segments_of(batch));
    EXPECT_EQ(pass.segments.cross, (SegmentSums{.queries = 1000, .pairs = 50 * 20 * 20}));
    const StepTrace trace = trace_step(pass, device_profile("h200").device);
    EXPECT_EQ(attention_flops(trace), literal_flops(pass.recipe.model, batch));
    const StepPlan plan = plan_step(pass, trace, device_profile("h200").device);
    if (!first) first = plan;
    EXPECT_EQ(plan.matrix_flops, first->matrix_flops);
    EXPECT_EQ(plan.predicted_s(), first->predicted_s());
  }
}

TEST_F(PassSegmentsOf, SidesOfUnequalLengthAreCountedApart) {
  const ResolvedRecipe pass = resolved(small_recipe(pairs(30, 9, 600, 64)));
  const Batch batch = batch_of(pass);
  EXPECT_EQ(pass.segments, segments_of(batch));
  EXPECT_EQ(pass.segments.source.pairs, 20 * 30 * 30);
  EXPECT_EQ(pass.segments.cross.pairs, 20 * 10 * 30);
  EXPECT_EQ(attention_flops(trace_step(pass, probe_cpu(1))), literal_flops(pass.recipe.model, batch));
}

// Every place that predicts: settings, advice, passes of a step.
TEST_F(PassSegmentsOf, SettingsAndAdviceCountThemToo) {
  const DeviceInfo& h200 = device_profile("h200").device;
  const Recipe recipe = small_recipe(pairs(20, 19, 1000, 100));
  const auto all = predict_settings(recipe, settings_of(parse_switches("batch.sequence=100,1000")), h200);
  EXPECT_EQ(all[0].step.matrix_flops, all[1].step.matrix_flops);
  EXPECT_EQ(*all[1].gain, 0.0);
  const auto passes = predict_settings(recipe, settings_of(parse_switches("batch.accumulate=1,5")), h200);
  EXPECT_EQ(passes[1].step.matrix_flops, 5 * passes[0].step.matrix_flops);
  for (const Advice& advice : advise(recipe, h200)) {
    EXPECT_FALSE(advice.quantity == "sequence" && advice.advised) << "a bound that moves changes no work: " << advice.set;
  }
}

// 40 tokens, of which four train less: no window is as long as the bound says.
TEST_F(PassSegmentsOf, WindowsOfAShortStreamAreThoseThatTrainingCuts) {
  const ResolvedRecipe pass = resolved(small_recipe(text(40, 2000, 1000)));
  double pairs = 0.0;
  constexpr int kBatches = 200;
  BatchStream stream = corpus_of(pass.recipe).training(batch_shape(pass));
  for (int i = 0; i < kBatches; ++i) pairs += static_cast<double>(segments_of(*stream.next()).target.pairs) / kBatches;
  EXPECT_EQ(pass.segments.origin, PassSegments::Origin::packed);
  EXPECT_EQ(pass.segments.target.queries, 2000);
  EXPECT_NEAR(static_cast<double>(pass.segments.target.pairs) / pairs, 1.0, 0.02);
  EXPECT_LT(pass.segments.target.pairs, 2000 * 36);
}

TEST_F(PassSegmentsOf, WindowsOfALongStreamAreCutFromTheRows) {
  const ResolvedRecipe pass = resolved(small_recipe(text(300'000, 100, 48)));
  EXPECT_EQ(pass.segments.origin, PassSegments::Origin::windows);
  const Batch batch = batch_of(pass);
  EXPECT_EQ(pass.segments.target, segments_of(batch).target);
  EXPECT_EQ(pass.segments.target.pairs, 48 * 48 + 48 * 48 + 4 * 4);
  EXPECT_EQ(attention_flops(trace_step(pass, probe_cpu(1))), literal_flops(pass.recipe.model, batch));
}

TEST_F(PassSegmentsOf, MadeUpSequencesFillTheRows) {
  for (const char* source : {"batch.source_tokens=45", "batch.source_tokens=50", "batch.source_tokens=20"}) {
    const ResolvedRecipe pass = resolved(small_recipe({source, "batch.target_tokens=50", "batch.sequence=12"}));
    const Batch batch = batch_of(pass);
    for (const auto sums : {&PassSegments::source, &PassSegments::target, &PassSegments::cross}) {
      EXPECT_EQ(pass.segments.*sums, segments_of(batch).*sums) << source;
    }
    EXPECT_EQ(attention_flops(trace_step(pass, probe_cpu(1))), literal_flops(pass.recipe.model, batch)) << source;
  }
}

TEST_F(PassSegmentsOf, WhatIsNotKnownIsSaid) {
  std::vector<std::string> overrides = pairs(20, 19, 1000, 100);
  overrides.emplace_back("data.source=nowhere.src");
  const ResolvedRecipe pass = resolved(small_recipe(overrides));
  EXPECT_EQ(pass.segments.origin, PassSegments::Origin::assumed);
  EXPECT_EQ(pass.segments.target.pairs, 10 * 100 * 100);
  const std::string said = text_of(pass.segments, batch_shape(pass));
  EXPECT_NE(said.find("as if sentences had batch.sequence = 100 tokens"), std::string::npos) << said;
  EXPECT_NE(said.find("not known without the corpus"), std::string::npos) << said;
  const ResolvedRecipe known = resolved(small_recipe(pairs(20, 19, 1000, 100)));
  EXPECT_EQ(text_of(known.segments, batch_shape(known)),
            "attention is counted for the pairs of the corpus, as training packs them: a source token's sentence has 20 tokens on "
            "average, a target token's 20.");
}

}  // namespace
}  // namespace tilewave
