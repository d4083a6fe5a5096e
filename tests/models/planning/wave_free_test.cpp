// Step 3 of the guide: the case study's batches on its own GPU, on an H200 worked by hand, and what a run keeps of the answer.
#include "models/planning/wave_free.h"

#include <algorithm>
#include <functional>
#include <gtest/gtest.h>
#include <random>

#include "models/planning/resolve.h"
#include "tests/models/planning/problems.h"
#include "tests/models/training/small_runs.h"

namespace tilewave {
namespace {

using Numbers = std::vector<std::int64_t>;

// The case study's feed-forward layer, 4096 out of 1024, in a model of few layers.
Recipe case_study(std::int64_t rows, const std::vector<std::string>& overrides = {}) {
  std::vector<std::string> all = {"model.d_model=1024",
                                  "model.d_ff=4096",
                                  "model.heads=16",
                                  "model.decoder_layers=1",
                                  "run.precision=fp16",
                                  "guidelines.wave_free_batch=nearest",
                                  "guidelines.wave_tile=256x128",
                                  concat("batch.source_tokens=", rows),
                                  concat("batch.target_tokens=", rows)};
  all.insert(all.end(), overrides.begin(), overrides.end());
  return small_recipe(all);
}

Numbers numbers(const Recipe& recipe, std::int64_t least, std::int64_t most, const DeviceInfo& on) {
  Numbers found;
  for (const RowsPlan& step : wave_free_steps(recipe, wave_rows(recipe, on).front(), least, most, on)) found.push_back(step.rows);
  return found;
}

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

// 16 tiles high: whole waves every 5 x 128 tokens on 80 SMs, every 33 x 128 on 132; "or just below" is 95 % and more.
TEST(WaveFree, TheCaseStudysBatches) {
  EXPECT_EQ(numbers(case_study(2048), 600, 2600, device("v100")), (Numbers{640, 1280, 1920, 2432, 2560}));
  EXPECT_EQ(numbers(case_study(4096), 4096, 5120, device("v100")), (Numbers{4352, 4480, 4864, 4992, 5120}));
  EXPECT_EQ(numbers(case_study(2560), 1900, 2700, device("h200")), (Numbers{2048})) << "the guide's 2560 is none on an H200";
  EXPECT_EQ(numbers(case_study(4096), 4000, 4300, device("h200")), (Numbers{4096, 4224}));
}

// A little past whole waves the tile to step back with has begun another wave, and takes twice the time for it.
TEST(WaveFree, RowsJustPastWholeWavesStepBack) {
  for (const std::int64_t rows : {2120, 2176, 2240}) {
    const Recipe recipe =
        small_recipe({"model.d_model=128", "model.d_ff=512", "model.heads=4", "run.precision=bf16", "guidelines.wave_limit=0.1",
                      "guidelines.wave_free_batch=nearest", concat("batch.source_tokens=", rows), concat("batch.target_tokens=", rows)});
    const Numbers found = numbers(recipe, rows - rows / 10, rows + rows / 10, device("h200"));
    EXPECT_NE(std::find(found.begin(), found.end(), 2112), found.end()) << rows;
  }
}

// Of many waves each number gains alike: 64 of the columns of tiles are tried, and the number asked for.
TEST(WaveFree, OfManyNumbersSomeAreTried) {
  const Numbers found = numbers(case_study(60001), 50000, 70000, device("h200"));
  EXPECT_GT(found.size(), 40U);
  EXPECT_LE(found.size(), 65U);
  EXPECT_NE(std::find(found.begin(), found.end(), 60001), found.end());
  EXPECT_LT(found.front(), 51000);
  EXPECT_GT(found.back(), 69000);
}

TEST(WaveFree, TheLeastTimeARowWinsAndTheAdjustmentSaysSo) {
  const DeviceInfo& v100 = device("v100");
  const Recipe asked = case_study(4096, {"guidelines.wave_limit=0.25"});
  const WaveFree settled = settle_wave_free_batch(asked, v100);
  EXPECT_EQ(settled.recipe.guidelines.wave_free_batch, WaveFreeBatch::off);
  EXPECT_EQ(settled.recipe.batch.source_tokens, settled.recipe.batch.target_tokens);
  ASSERT_EQ(settled.adjustments.size(), 1u);
  const Adjustment& adjustment = settled.adjustments.front();
  EXPECT_EQ(adjustment.rule, "wave_free_batch");
  EXPECT_EQ(adjustment.what, "source and target rows");
  EXPECT_EQ(adjustment.from, 4096);
  EXPECT_EQ(adjustment.to, settled.recipe.batch.target_tokens);
  EXPECT_NE(adjustment.to, 4096) << adjustment.why;
  EXPECT_EQ(adjustment.cost_tokens, 2 * (adjustment.to - 4096));
  EXPECT_NE(adjustment.why.find("512 tiles, 6.40 waves; then 4096 x "), std::string::npos) << adjustment.why;
  // No other candidate, nor the number asked for, is predicted to be faster by more than what counts as the same.
  // Made-up ids: every row holds a token.
  const auto seconds_a_row = [](const StepPlan& step) { return step.predicted_s() / static_cast<double>(step.rows); };
  const double chosen = seconds_a_row(plan_step(resolve(settled.recipe), v100));
  const WaveRows rows = wave_rows(asked, v100).front();
  for (const RowsPlan& other : wave_free_steps(asked, rows, 3072, 5120, v100)) {
    EXPECT_LE(chosen, (1.0 + 2 * kSameTime) * seconds_a_row(other.step)) << other.rows;
  }
  EXPECT_LT(chosen, seconds_a_row(plan_step(resolve(rows.moved(asked, 4096)), v100)));
}

TEST(WaveFree, DirectionsAndMultiplesAreKept) {
  for (const std::string key : {"v100", "h200"}) {
    const std::string wide = "guidelines.wave_limit=0.3";
    const auto settled = [&](const std::string& direction) {
      return settle_wave_free_batch(case_study(4000, {wide, "guidelines.wave_free_batch=" + direction, "guidelines.batch_multiple_of=24"}),
                                    device(key))
          .recipe.batch;
    };
    const BatchConfig up = settled("up"), down = settled("down"), nearest = settled("nearest");
    EXPECT_GE(up.target_tokens, 4000) << key;
    EXPECT_LE(down.target_tokens, 4000) << key;
    for (const BatchConfig& batch : {up, down, nearest}) {
      EXPECT_EQ(batch.source_tokens, batch.target_tokens) << key;
      EXPECT_TRUE(batch.target_tokens == 4000 || batch.target_tokens % 24 == 0) << key << " " << batch.target_tokens;
      EXPECT_LE(std::abs(batch.target_tokens - 4000), 1200) << key;
    }
  }
}

TEST(WaveFree, SidesOfDifferentLengthsMoveByThemselves) {
  const Recipe asked = case_study(4096, {"batch.source_tokens=2048", "guidelines.wave_limit=0.3"});
  const WaveFree settled = settle_wave_free_batch(asked, device("v100"));
  ASSERT_EQ(settled.adjustments.size(), 2u);
  EXPECT_EQ(settled.adjustments[0].what, "source rows");
  EXPECT_EQ(settled.adjustments[1].what, "target rows");
  EXPECT_EQ(settled.adjustments[0].to, settled.recipe.batch.source_tokens);
  EXPECT_EQ(settled.adjustments[1].to, settled.recipe.batch.target_tokens);
  // A layer of one side alone moves that side alone.
  const Recipe decoder =
      case_study(4096, {"batch.source_tokens=2048", "guidelines.wave_limit=0.3", "guidelines.wave_layer=cross_attention.q"});
  EXPECT_EQ(settle_wave_free_batch(decoder, device("v100")).recipe.batch.source_tokens, 2048);
}

// Rows that nothing betters stay: 5120 tokens are eight whole waves of a V100.
TEST(WaveFree, WhatIsFreeOfWavesStays) {
  const WaveFree settled = settle_wave_free_batch(case_study(5120, {"guidelines.wave_limit=0.02"}), device("v100"));
  EXPECT_EQ(settled.recipe.batch.target_tokens, 5120);
  ASSERT_EQ(settled.adjustments.size(), 1u);
  EXPECT_EQ(settled.adjustments[0].from, settled.adjustments[0].to);
  EXPECT_EQ(settled.adjustments[0].cost_tokens, 0);
  EXPECT_NE(settled.adjustments[0].why.find("no wave-free number within 2.0 % is predicted to take less"), std::string::npos);
}

// 4200 tokens are 33 columns of tiles as 4224 are, four whole waves of an H200, though no multiple of 128 is near.
TEST(WaveFree, ANumberJustBelowAWholeWaveIsOne) {
  const DeviceInfo& h200 = device("h200");
  const WaveFree settled = settle_wave_free_batch(case_study(4200, {"guidelines.wave_limit=0.005"}), h200);
  ASSERT_EQ(settled.adjustments.size(), 1u);
  EXPECT_NE(settled.adjustments[0].why.find("528 tiles, 4.00 waves"), std::string::npos) << settled.adjustments[0].why;
  EXPECT_EQ(numbers(case_study(4200), 4200, 4200, h200), (Numbers{4200}));
  // 508 tokens are four columns, 80 % of a V100's wave; 520 begin the fifth, which fills it.
  EXPECT_EQ(numbers(case_study(508), 500, 520, device("v100")), (Numbers{520}));
  EXPECT_NO_THROW(settle_wave_free_batch(case_study(4200, {"guidelines.wave_limit=0"}), h200));
}

// Moved alone, a side's rows are padding rows: the guide's wave-free numbers for one side are no reason to move it.
TEST(WaveFree, RowsThatWouldBeGhostsAreNotAdded) {
  const DeviceInfo cpu = probe_cpu(2);
  const auto asked = [](const std::string& limit) {
    return small_recipe({"data.kind=number_names", "data.tokenizer=bytes", "model.vocabulary=260", "model.max_positions=96",
                         "batch.sequence=96", "batch.source_tokens=512", "batch.target_tokens=900", "guidelines.wave_free_batch=up",
                         "guidelines.wave_layer=cross_attention.q", "guidelines.wave_limit=" + limit});
  };
  EXPECT_EQ(settle_wave_free_batch(asked("0.5"), cpu).recipe.batch.target_tokens, 900);
}

// Over random shapes, sides and kinds of data: what is picked is never predicted slower a real token than what was asked for.
TEST(WaveFree, WhatIsPickedIsNeverPredictedSlower) {
  std::mt19937 random(23);
  const auto draw = [&](std::int64_t least, std::int64_t most) { return std::uniform_int_distribution<std::int64_t>(least, most)(random); };
  const std::vector<DeviceInfo> devices = {device("h200"), device("v100"), probe_cpu(3)};
  const std::vector<std::vector<std::string>> kinds = {
      {"data.kind=synthetic"}, {"data.kind=number_names", "data.tokenizer=bytes"}, {"data.kind=parallel", "data.tokenizer=bytes"}};
  int moved = 0, both = 0;
  for (int i = 0; i < 36; ++i) {
    const DeviceInfo& on = devices[static_cast<std::size_t>(i) % devices.size()];
    const std::int64_t source = draw(100, 5000), target = draw(0, 2) == 0 ? source : draw(100, 5000);
    std::vector<std::string> overrides = {
        "model.vocabulary=260",
        "model.max_positions=96",
        "batch.sequence=96",
        concat("model.d_model=", 32 * draw(1, 16)),
        concat("model.d_ff=", draw(64, 2048)),
        concat("run.precision=", on.backend == Backend::cpu ? "fp32" : "fp16"),
        concat("batch.source_tokens=", source),
        concat("batch.target_tokens=", target),
        concat("guidelines.wave_limit=", draw(0, 2) == 0 ? "0.5" : "0.2"),
        concat("guidelines.batch_multiple_of=", draw(0, 2) == 0 ? 24 : 1),
        concat("guidelines.wave_layer=", draw(0, 2) == 0 ? "cross_attention.q" : "ffn.up"),
        concat("guidelines.wave_free_batch=", std::vector{"nearest", "up", "down"}[static_cast<std::size_t>(draw(0, 2))])};
    const std::vector<std::string>& kind = kinds[static_cast<std::size_t>(i / 3) % kinds.size()];
    overrides.insert(overrides.end(), kind.begin(), kind.end());
    const Recipe asked = small_recipe(overrides);
    Recipe off = asked;
    off.guidelines.wave_free_batch = WaveFreeBatch::off;
    RealTokenCounter tokens(asked);
    WaveFree settled;
    try {
      settled = settle_wave_free_batch(asked, on, tokens);
    } catch (const InputError&) {
      continue;  // no wave-free number is near
    }
    const auto worth = [&](const Recipe& recipe) {
      const ResolvedRecipe resolved = resolve(recipe);
      return StepWorth{.seconds = plan_step(resolved, on).predicted_s(), .tokens = tokens(resolved)};
    };
    const StepWorth before = worth(off), after = worth(settled.recipe);
    EXPECT_LE(relative_time(after, before), 1.0) << source << " " << target;
    // So too a real target token, which is what ablations count.
    EXPECT_LE(after.seconds / after.tokens.target, before.seconds / before.tokens.target * (1.0 + 1e-12)) << source << " " << target;
    if (settled.recipe.batch == asked.batch) continue;
    ++moved;
    both += source != target && settled.recipe.batch.source_tokens != source && settled.recipe.batch.target_tokens != target;
  }
  EXPECT_GT(moved, 5);
  EXPECT_GT(both, 0) << "sides of different lengths move together";
}

TEST(WaveFree, ResolvingStoresNumbersAndAsksOnce) {
  const Recipe asked = case_study(4096, {"guidelines.wave_limit=0.25"});
  const ResolvedRecipe resolved = resolve(asked, {}, device("v100"));
  EXPECT_NE(resolved.shapes.target_rows, 4096);
  EXPECT_EQ(resolved.recipe.batch.target_tokens, resolved.shapes.target_rows);
  EXPECT_EQ(resolve(resolved.recipe).recipe, resolved.recipe) << "no device is asked again";
  EXPECT_EQ(resolve(resolved.recipe, {}, device("h200")).shapes, resolved.shapes) << "nor another one";
  EXPECT_NE(refusal([&] { resolve(asked); }).find("there is no device here; guidelines.wave_free_batch = \"off\" needs none."),
            std::string::npos);
  // Resuming takes the numbers of the run, elsewhere too, and those alone that answer this very question.
  const auto resumed = [&](const Recipe& recipe) { return with_settled_waves(recipe, resolved.recipe, resolved.adjustments); };
  EXPECT_EQ(resumed(asked), resolved.recipe);
  for (const std::int64_t rows : {2048, 4095, 4100}) {
    const Recipe other = case_study(rows, {"guidelines.wave_limit=0.25"});
    EXPECT_EQ(resumed(other), other) << rows;
  }
  EXPECT_EQ(with_settled_waves(asked, resolved.recipe, {}), asked) << "the run's rows are no answer: it asked for no waves";
}

// Rows that step 2 adds cost memory on a device, one side after the other.
TEST(WaveFree, RoundedRowsCostWhatTheTraceSays) {
  const DeviceInfo& v100 = device("v100");
  const auto rows = [](const char* multiple, const char* source, const char* target) {
    return small_recipe({"run.precision=fp16", std::string("guidelines.batch_multiple_of=") + multiple,
                         std::string("batch.source_tokens=") + source, std::string("batch.target_tokens=") + target});
  };
  const std::vector<Adjustment> adjustments = resolve(rows("16", "45", "50"), {}, v100).adjustments;
  const auto bytes = [&](const char* source, const char* target) { return plan_step(resolve(rows("1", source, target)), v100).bytes; };
  std::int64_t source_bytes = 0, target_bytes = 0;
  for (const Adjustment& adjustment : adjustments) {
    if (adjustment.rule != "batch_multiple_of") continue;
    (adjustment.what == "source rows" ? source_bytes : target_bytes) = adjustment.cost_bytes;
  }
  EXPECT_GT(target_bytes, 0);
  EXPECT_EQ(source_bytes, bytes("48", "50") - bytes("45", "50"));
  EXPECT_EQ(source_bytes + target_bytes, bytes("48", "64") - bytes("45", "50"));
}

// What ranks share out: a number of the whole batch, of which one rank's share fills whole waves. Windows of 128 go to ranks whole: 4 ranks
// of a V100 each have 640, 1,280 ... of 2,560, 5,120 ...
TEST(WaveFree, ARanksShareFillsTheWaves) {
  const DeviceInfo& v100 = device("v100");
  const std::vector<std::string> of_four = {"run.ranks=4", "batch.sequence=128", "model.max_positions=128", "guidelines.wave_limit=0.15"};
  const Recipe asked = case_study(8960, of_four);
  const WaveRows rows = wave_rows(asked, v100).front();
  EXPECT_TRUE(rows.source && rows.target);
  EXPECT_EQ(rows.asked, 8960);
  const auto share = [](const Recipe& recipe) { return share_shape(resolve(without_waves(recipe)), 4); };
  const std::vector<RowsPlan> steps = wave_free_steps(asked, rows, 7900, 10500, v100);
  ASSERT_FALSE(steps.empty());
  for (const RowsPlan& step : steps) {
    const std::int64_t of_rank = share(rows.moved(asked, step.rows)).target_rows;
    EXPECT_EQ(of_rank, step.rows / 4);
    const Tiling tiling = tile_waves(4096, of_rank, {.m = 256, .n = 128}, 80);
    EXPECT_GE(tiling.wave_efficiency, kWaveFreeEfficiency) << step.rows;
  }
  EXPECT_TRUE(std::ranges::any_of(steps, [](const RowsPlan& step) { return step.rows == 4 * 2560; }));

  const WaveFree settled = settle_wave_free_batch(asked, v100);
  ASSERT_EQ(settled.adjustments.size(), 1u);
  const Adjustment& adjustment = settled.adjustments.front();
  EXPECT_EQ(adjustment.from, 8960);
  EXPECT_EQ(adjustment.to, settled.recipe.batch.target_tokens);
  EXPECT_GT(adjustment.to, 8960) << adjustment.why;
  EXPECT_NE(
      adjustment.why.find("Tesla V100-SXM2-32GB, a share of each of 4 ranks, 4096 x 2304 in 256x128: 288 tiles, 3.60 waves; then 4096 x "),
      std::string::npos)
      << adjustment.why;
  EXPECT_EQ(settled.recipe.run.ranks, 4);
  // One rank's 8,960 fill fourteen waves as they are.
  const auto has_asked = [&](const Numbers& found) { return std::ranges::find(found, 8960) != found.end(); };
  EXPECT_TRUE(has_asked(numbers(case_study(8960), 7900, 10500, v100)));
  EXPECT_FALSE(has_asked(numbers(asked, 7900, 10500, v100)));
}

TEST(WaveFree, TheCpusThreadsStandForSms) {
  DeviceInfo cpu = probe_cpu(3);
  const Recipe asked = small_recipe({"guidelines.wave_free_batch=nearest", "guidelines.wave_tile=64x8", "guidelines.wave_limit=0.5"});
  for (const RowsPlan& step : wave_free_steps(asked, wave_rows(asked, cpu).back(), 25, 75, cpu)) EXPECT_EQ(step.rows % 8, 0);
  EXPECT_NO_THROW(resolve(asked, {}, cpu));
}

TEST(WaveFree, RefusalsAreSentences) {
  const DeviceInfo& v100 = device("v100");
  const auto refused = [&](const std::vector<std::string>& overrides) {
    return refusal([&] { resolve(case_study(4096, overrides), {}, v100); });
  };
  EXPECT_EQ(refused({"guidelines.wave_limit=0.01"}),
            "guidelines.wave_free_batch = \"nearest\": from 4056 to 4136 rows no number fills whole waves in forward of "
            "encoder.*.ffn.up on Tesla V100-SXM2-32GB (80 SMs); widen guidelines.wave_limit, or name another wave_layer or wave_tile.");
  EXPECT_NE(refused({"guidelines.wave_role=wgrad"}).find("K of a weight gradient"), std::string::npos);
  const std::string layer = refused({"guidelines.wave_layer=fn.up"});
  EXPECT_NE(layer.find("\"fn.up\" names no layer"), std::string::npos) << layer;
  EXPECT_NE(layer.find("decoder.*.ffn.up"), std::string::npos) << layer;
  const std::string tile = refused({"guidelines.wave_tile=7x9"});
  EXPECT_TRUE(
      tile.starts_with("guidelines.wave_tile = \"7x9\" is no tile that forward of encoder.*.ffn.up can have on "
                       "Tesla V100-SXM2-32GB; write one of chosen, "))
      << tile;
  EXPECT_NE(tile.find(", 256x128"), std::string::npos) << tile;
}

}  // namespace
}  // namespace tilewave
