// Decoding with a cache says what the whole model says, and finds what it claims to look for.
#include "models/decode.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

#include "framework/data/tokenizer.h"
#include "tests/models/small_runs.h"

namespace tilewave {
namespace {

constexpr std::int64_t kVocabulary = 61;

// Logits of every position of a target under the whole model, without a cache: [target + 1][V].
std::vector<std::vector<double>> whole_logits(SmallRun& run, const std::vector<std::int32_t>& source,
                                              const std::vector<std::int32_t>& target) {
  const NoGradient scope(run.context);
  const auto source_rows = static_cast<std::int64_t>(source.size()), target_rows = static_cast<std::int64_t>(target.size()) + 1;
  const BatchShape shape{.source_rows = source_rows, .target_rows = target_rows, .sequence = std::max(source_rows, target_rows)};
  Packer packer(shape);
  EXPECT_TRUE(packer.add_pair(source, target));
  const BatchTensors tensors = make_batch_tensors(run.context, shape);
  upload(run.context, std::move(packer).take(), tensors);
  const Tensor logits = run.step.model().logits(tensors, shape.sequence, {}).value();
  std::vector<std::vector<double>> rows;
  for (std::int64_t row = 0; row < logits.rows(); ++row)
    rows.push_back(read_elements(run.context, logits.slice_rows(row, 1).columns(0, kVocabulary)));
  return rows;
}

std::vector<std::int32_t> allowed_ids(std::int64_t vocabulary) {
  std::vector<std::int32_t> ids = {kEndId};
  for (std::int32_t id = kSpecialIds; id < vocabulary; ++id) ids.push_back(id);
  return ids;
}

std::vector<std::int32_t> greedy(SmallRun& run, const std::vector<std::int32_t>& source) {
  std::vector<std::int32_t> target;
  const std::size_t longest = std::min<std::size_t>(16, 2 * source.size() + 16);
  while (target.size() < longest) {
    const std::vector<double> logits = whole_logits(run, source, target).back();
    const std::vector<std::int32_t> ids = allowed_ids(kVocabulary);
    const std::int32_t best =
        *std::max_element(ids.begin(), ids.end(), [&](std::int32_t a, std::int32_t b) { return logits[a] < logits[b]; });
    if (best == kEndId) break;
    target.push_back(best);
  }
  return target;
}

// Log probability of a target and its end among the first `vocabulary` ids, over its length to the power of the penalty.
double score(SmallRun& run, const std::vector<std::int32_t>& source, const std::vector<std::int32_t>& target, std::int64_t vocabulary,
             double penalty) {
  const std::vector<std::vector<double>> logits = whole_logits(run, source, target);
  double sum = 0.0;
  for (std::size_t row = 0; row < logits.size(); ++row) {
    double exponentials = 0.0;
    for (std::int64_t id = 0; id < vocabulary; ++id) exponentials += std::exp(logits[row][static_cast<std::size_t>(id)]);
    sum += logits[row][static_cast<std::size_t>(row < target.size() ? target[row] : kEndId)] - std::log(exponentials);
  }
  return sum / std::pow((5.0 + static_cast<double>(target.size()) + 1.0) / 6.0, penalty);
}

TEST(Decode, GreedyWithACacheIsGreedyWithout) {
  for (const char* norm : {"model.norm=pre", "model.norm=post"}) {
    SmallRun run(small_recipe({"run.precision=fp64", "optimizer.learning_rate=5e-3", norm}));
    run.losses(30);
    const std::vector<std::vector<std::int32_t>> sources = {{7, 9, 30, 12}, {}, {5}, {8, 8, 60, 33, 21, 4, 19, 50, 11}, {44, 4}};
    const std::vector<std::vector<std::int32_t>> targets = translate(run.step.model(), sources);
    ASSERT_EQ(targets.size(), sources.size());
    std::size_t tokens = 0;
    for (std::size_t i = 0; i < sources.size(); ++i) {
      const std::vector<std::int32_t> expected = sources[i].empty() ? std::vector<std::int32_t>() : greedy(run, sources[i]);
      EXPECT_EQ(targets[i], expected) << "source " << i << ", " << norm;
      tokens += expected.size();
    }
    EXPECT_GT(tokens, 8u);
    // One at a time, and in groups of any size, gives the same.
    for (const std::int64_t rows : {1, 2}) EXPECT_EQ(translate(run.step.model(), sources, {.rows = rows}), targets);
  }
}

TEST(Decode, WideBeamsFindTheBestOfAll) {
  SmallRun run(small_recipe({"run.precision=fp64", "optimizer.learning_rate=5e-3", "model.max_positions=5", "batch.sequence=5"}));
  run.losses(10);
  const std::vector<std::int32_t> source = {9, 30, 12};
  constexpr std::int64_t kFew = 6;  // two tokens and the end
  std::vector<std::vector<std::int32_t>> all = {{}};
  for (std::size_t first = 0; first < all.size(); ++first) {
    if (all[first].size() == 4) break;
    for (const std::int32_t id : {4, 5}) {
      all.push_back(all[first]);
      all.back().push_back(id);
    }
  }
  ASSERT_EQ(all.size(), 31u);
  for (const double penalty : {0.0, 0.6, 3.0}) {
    const auto better = [&](const auto& a, const auto& b) {
      return score(run, source, a, kFew, penalty) < score(run, source, b, kFew, penalty);
    };
    const std::vector<std::int32_t> best = *std::max_element(all.begin(), all.end(), better);
    EXPECT_EQ(translate(run.step.model(), std::vector<std::vector<std::int32_t>>{source},
                        {.beams = 64, .length_penalty = penalty, .vocabulary = kFew})
                  .front(),
              best)
        << "penalty " << penalty;
  }
}

TEST(Decode, BeamsLoseNothingAgainstGreedy) {
  SmallRun run(small_recipe({"run.precision=fp64", "optimizer.learning_rate=5e-3", "model.max_positions=64"}));  // room for every target
  run.losses(30);
  const std::vector<std::vector<std::int32_t>> sources = {{7, 9, 30, 12}, {5}, {8, 8, 60, 33, 21, 4, 19, 50, 11}};
  const auto narrow = translate(run.step.model(), sources), wide = translate(run.step.model(), sources, {.beams = 5, .rows = 7});
  double gained = 0.0;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    gained += score(run, sources[i], wide[i], kVocabulary, 0.6) - score(run, sources[i], narrow[i], kVocabulary, 0.6);
  }
  EXPECT_GE(gained, -1e-9);
}

TEST(Decode, ASourceBeyondThePositionsIsNamed) {
  SmallRun run(small_recipe());
  const std::vector<std::vector<std::int32_t>> sources = {{5}, std::vector<std::int32_t>(17, 5)};
  try {
    translate(run.step.model(), sources);
    FAIL() << "17 tokens do not fit 16 positions";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("source 2 has 17 tokens"), std::string::npos) << error.what();
  }
}

class Generate : public testing::Test {
 protected:
  Generate()
      : run([] {
          std::vector<std::string> overrides = kDecoderOnly;
          overrides.insert(overrides.end(), {"run.precision=fp64", "optimizer.learning_rate=5e-3"});
          return small_recipe(overrides);
        }()) {
    run.losses(20);
  }

  std::vector<std::int32_t> text(const std::vector<std::int32_t>& prompt, const GenerateOptions& options) {
    std::vector<std::int32_t> ids;
    generate(run.step.model(), prompt, options, [&](std::int32_t id) { ids.push_back(id); });
    return ids;
  }

  SmallRun run;
};

TEST_F(Generate, TheMostProbableTokenIsTheWholeModels) {
  const std::vector<std::int32_t> prompt = {9, 30, 12};
  const std::vector<std::int32_t> drawn = text(prompt, {.tokens = 10, .temperature = 0.0});
  ASSERT_FALSE(drawn.empty());
  std::vector<std::int32_t> seen = prompt;
  for (const std::int32_t id : drawn) {
    const NoGradient scope(run.context);
    const auto rows = static_cast<std::int64_t>(seen.size());
    const BatchShape shape{.source_rows = 0, .target_rows = rows, .sequence = rows};
    Packer packer(shape);
    ASSERT_TRUE(packer.add({.source = {}, .target_in = seen, .target_out = seen}));
    const BatchTensors tensors = make_batch_tensors(run.context, shape);
    upload(run.context, std::move(packer).take(), tensors);
    const Tensor logits = run.step.model().logits(tensors, shape.sequence, {}).value();
    const std::vector<double> last = read_elements(run.context, logits.slice_rows(logits.rows() - 1, 1));
    const std::vector<std::int32_t> ids = allowed_ids(kVocabulary);
    EXPECT_EQ(id, *std::max_element(ids.begin(), ids.end(), [&](std::int32_t a, std::int32_t b) { return last[a] < last[b]; }));
    seen.push_back(id);
  }
}

TEST_F(Generate, SeedsAndTopKDecide) {
  const std::vector<std::int32_t> prompt = {9, 30, 12};
  const std::vector<std::int32_t> drawn = text(prompt, {.tokens = 12, .seed = 3});
  EXPECT_EQ(drawn, text(prompt, {.tokens = 12, .seed = 3}));
  EXPECT_NE(drawn, text(prompt, {.tokens = 12, .seed = 4}));
  EXPECT_EQ(text(prompt, {.tokens = 12, .top_k = 1, .seed = 3}), text(prompt, {.tokens = 12, .temperature = 0.0}));
}

TEST_F(Generate, TextGoesOnPastThePositionsAndStaysInTheVocabulary) {
  const std::vector<std::int32_t> drawn = text(std::vector<std::int32_t>(20, 9), {.tokens = 40, .temperature = 2.0, .vocabulary = 20});
  EXPECT_GT(drawn.size(), 3u);
  for (const std::int32_t id : drawn) EXPECT_TRUE(id >= kSpecialIds && id < 20) << id;
}

}  // namespace
}  // namespace tilewave
