// What a run says of text it was not trained on: the validation loss is the mean over every target token of it, whatever the batches,
// without dropout and label smoothing; exact_match is the fraction of test pairs that are translated to the letter. Each stands beside what
// it was counted over and what was left out.
#include <algorithm>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "models/training/trainer.h"
#include "tests/memory_folder.h"
#include "tests/models/training/small_runs.h"
#include "tests/models/whole_model.h"
#include "tests/shell.h"

namespace tilewave {
namespace {

struct Pair {
  std::string source, target;
};

class Validation : public testing::Test {
 protected:
  // A recipe that trains on some pairs and validates on others.
  Recipe recipe(const std::vector<Pair>& training, const std::vector<Pair>& validation, const std::vector<std::string>& overrides) const {
    std::vector<std::string> all = {"run.precision=fp64",   "data.kind=parallel",     "data.tokenizer=bytes",
                                    "model.vocabulary=260", "model.decoder_layers=1", "run.checkpoint_every=0"};
    for (const auto& [name, pairs] : {std::pair{"", &training}, std::pair{"validation_", &validation}}) {
      std::string source, target;
      for (const Pair& pair : *pairs) {
        source += pair.source + "\n";
        target += pair.target + "\n";
      }
      for (const auto& [side, text] : {std::pair{"source", &source}, std::pair{"target", &target}}) {
        const std::string file = (temporary / (std::string(name) + side)).string();
        write_text(file, *text);
        all.push_back(std::string("data.") + name + side + "='" + file + "'");
      }
    }
    all.insert(all.end(), overrides.begin(), overrides.end());
    return small_recipe(all);
  }

  TrainingResult trained(const Recipe& recipe, const TrainingObserver& observer = {}) const {
    return train({.recipe = recipe,
                  .run = {.recipe = "small", .folder = temporary / "run", .overwrite = Overwrite::force},
                  .queue = make_cpu_queue(2),
                  .device = probe_cpu(2)},
                 observer);
  }
  nlohmann::json summary() const { return nlohmann::json::parse(file_text(temporary / "run/summary.json")); }

  MemoryFolder temporary;
};

TEST_F(Validation, TheLossIsTheMeanOverTheTokensOfAllPairs) {
  std::vector<Pair> training, validation;
  for (int i = 0; i < 20; ++i) training.push_back({"nine " + std::to_string(7 * i), "neun " + std::to_string(7 * i)});
  for (int i = 0; i < 9; ++i) validation.push_back({"ten " + std::to_string(i), i < 6 ? "zehn  " + std::to_string(i) : "0"});
  const Recipe dropping = recipe(training, validation,
                                 {"model.dropout=0.3", "model.attention_dropout=0.3", "optimizer.label_smoothing=0.3",
                                  "optimizer.learning_rate=3e-3", "run.steps=6", "run.validate_every=4", "batch.target_tokens=40"});

  // Token by token from the logits of each pair alone.
  SmallRun run(dropping);
  const auto expected = [&] {
    double sum = 0.0;
    std::size_t tokens = 0;
    for (const Pair& pair : validation) {
      const Tokenizer& tokenizer = *run.corpus.tokenizer();
      std::vector<std::int32_t> labels = tokenizer.encode(pair.target);
      const std::vector<std::vector<double>> logits = whole_logits(run, tokenizer.encode(pair.source), labels);
      labels.push_back(kEndId);
      for (std::size_t i = 0; i < labels.size(); ++i) sum -= log_probabilities(logits[i], 260)[static_cast<std::size_t>(labels[i])];
      tokens += labels.size();
    }
    return sum / static_cast<double>(tokens);
  };
  const auto measured = [&] { return run.step.validate(run.corpus.validation(batch_shape(run.resolved))); };

  run.losses(4);
  const double on_the_way = expected();
  EXPECT_NEAR(measured(), on_the_way, 1e-12);
  run.losses(2);
  const double at_the_end = expected();
  EXPECT_NEAR(measured(), at_the_end, 1e-12);
  EXPECT_GT(std::abs(at_the_end - on_the_way), 1e-3);

  // The batches are two, of unequal tokens.
  BatchStream stream = run.corpus.validation(batch_shape(run.resolved));
  std::vector<std::int64_t> tokens;
  while (const std::optional<Batch> batch = stream.next()) tokens.push_back(batch->real_tokens);
  EXPECT_EQ(tokens, (std::vector<std::int64_t>{40, 14}));

  // A whole run says the same.
  std::vector<double> validated;
  const TrainingResult result =
      trained(dropping, {.validated = [&](std::int64_t, const ValidationLoss& loss) { validated.push_back(loss.loss); }});
  ASSERT_EQ(validated.size(), 1u);
  EXPECT_NEAR(validated.front(), on_the_way, 1e-12);
  EXPECT_NEAR(result.validation.loss, at_the_end, 1e-12);
  EXPECT_EQ(summary().at("validation_loss").get<double>(), result.validation.loss);
  EXPECT_EQ(summary().at("validation_tokens"), 54);
  EXPECT_EQ(summary().at("validation_pairs"), 9);
  EXPECT_EQ(summary().at("validation_pairs_left_out"), 0);
}

TEST_F(Validation, ExactMatchIsTheFractionTranslatedToTheLetter) {
  const std::vector<Pair> pairs = {{"one", "eins"},  {"two", "zwei"},   {"three", "drei"},
                                   {"four", "vier"}, {"five", "fuenf"}, {"six", "sechs"}};
  std::vector<Pair> asked = pairs;
  asked.push_back({std::string(13, 'x'), "long"});
  asked.push_back({"one", "a target is longer than a sequence may be"});
  const std::vector<std::string> overfitted = {"model.dropout=0", "model.attention_dropout=0", "optimizer.label_smoothing=0",
                                               "optimizer.learning_rate=1e-2", "run.steps=120"};
  for (const bool wrong : {false, true}) {
    if (wrong) asked[3].target = "viel";
    const TrainingResult result = trained(recipe(pairs, asked, overfitted));
    ASSERT_TRUE(result.exact_match);
    EXPECT_EQ(*result.exact_match, (wrong ? 5.0 : 6.0) / 8.0) << "what is left out is not matched";
    EXPECT_EQ(summary().at("test_pairs"), 8);
    EXPECT_EQ(summary().at("test_pairs_translated"), 6);
    EXPECT_EQ(summary().at("test_pairs_left_out"), 2);
    EXPECT_EQ(summary().at("validation_pairs"), 8);
    EXPECT_EQ(summary().at("validation_pairs_left_out"), 2);
    EXPECT_EQ(summary().at("exact_match").get<double>(), *result.exact_match);
    EXPECT_FALSE(result.samples.empty());
    for (std::size_t i = 0; i < result.samples.size(); ++i) {
      EXPECT_EQ(result.samples[i].source, asked[i].source);
      EXPECT_EQ(result.samples[i].expected, asked[i].target);
      EXPECT_EQ(result.samples[i].translation, pairs[i].target);
    }
  }
}

// One pair of four can be translated: the fraction is of the four, on whichever side the others are too long.
TEST_F(Validation, PairsLeftOutAreNotMatched) {
  const std::vector<Pair> pairs = {{"ab", "xy"}, {"cd", "uv"}};
  const std::string too_long(15, 'x');
  const std::vector<std::string> overfitted = {
      "model.dropout=0", "model.attention_dropout=0", "optimizer.label_smoothing=0", "optimizer.learning_rate=1e-2",
      "run.steps=100",   "run.validate_every=50"};
  for (const Pair& left_out : {Pair{too_long, "xy"}, Pair{"ab", too_long}, Pair{too_long, too_long}}) {
    std::vector<std::string> notes;
    const TrainingResult result = trained(recipe(pairs, {pairs[0], left_out, left_out, left_out}, overfitted),
                                          {.noted = [&](const std::string& note) { notes.push_back(note); }});
    EXPECT_EQ(result.exact_match, 0.25);
    EXPECT_EQ(result.samples.size(), 1u);
    const nlohmann::json stored = summary();
    EXPECT_EQ(stored.at("exact_match"), 0.25);
    EXPECT_EQ(stored.at("test_pairs"), 4);
    EXPECT_EQ(stored.at("test_pairs_translated"), 1);
    EXPECT_EQ(stored.at("test_pairs_left_out"), 3);
    EXPECT_EQ(stored.at("validation_tokens"), 3);
    EXPECT_EQ(stored.at("validation_pairs"), 4);
    EXPECT_EQ(stored.at("validation_pairs_left_out"), 3);
    EXPECT_TRUE(std::ranges::any_of(notes, [](const std::string& note) {
      return note.find("3 of 4 test pairs are longer than batch.sequence = 12 on a side and not translated") != std::string::npos;
    }));
    std::istringstream lines(file_text(temporary / "run/metrics.jsonl"));
    int validated = 0;
    for (std::string line; std::getline(lines, line);) {
      const nlohmann::json step = nlohmann::json::parse(line);
      if (!step.contains("validation_loss")) continue;
      ++validated;
      EXPECT_EQ(step.at("validation_tokens"), 3);
      EXPECT_EQ(step.at("validation_pairs_left_out"), 3);
    }
    EXPECT_EQ(validated, 1);
  }
}

// All of the held-out tokens but the first, which nothing comes before, whatever the rows.
TEST_F(Validation, EveryTokenOfAStreamIsValidated) {
  std::string text, held_out;
  for (int i = 0; i < 60; ++i) text += "the number " + std::to_string(7 * i) + "\n";
  for (int i = 0; i < 15; ++i) held_out += "the number " + std::to_string(11 * i) + "\n";
  write_text(temporary / "text", text);
  write_text(temporary / "held_out", held_out);
  for (const char* rows : {"50", "37", "13", "12"}) {
    std::vector<std::string> overrides = kDecoderOnly;
    for (const std::string& more :
         {std::string("data.kind=text"), std::string("data.tokenizer=bytes"), "data.source='" + (temporary / "text").string() + "'",
          "data.validation_source='" + (temporary / "held_out").string() + "'", std::string("model.vocabulary=260"),
          std::string("run.steps=1"), std::string("batch.target_tokens=") + rows}) {
      overrides.push_back(more);
    }
    EXPECT_EQ(trained(small_recipe(overrides)).validation.target_tokens, std::ssize(held_out) - 1);
    EXPECT_EQ(summary().at("validation_tokens"), held_out.size() - 1);
    EXPECT_FALSE(summary().contains("validation_pairs"));
  }
}

// A tokenizer of sentences knows one kind of space, and what it cannot write is no mistake of the model.
TEST_F(Validation, ExactMatchAsksForNoSpacesThatTheTokenizerDrops) {
  std::vector<Pair> pairs, spaced;
  for (const char* const one : {"one", "two", "three", "four", "five", "six"}) {
    for (const char* const other : {"red", "green"}) {
      pairs.push_back({std::string(one) + " " + other, std::string(other) + " " + one});
      spaced.push_back({pairs.back().source, " " + std::string(other) + "  " + one + " "});
    }
  }
  const std::vector<std::string> bpe = {
      "data.tokenizer=bpe",        "data.tokenizer_vocabulary=40", "model.vocabulary=40",          "model.dropout=0",
      "model.attention_dropout=0", "optimizer.label_smoothing=0",  "optimizer.learning_rate=1e-2", "run.steps=150"};
  const TrainingResult plain = trained(recipe(pairs, pairs, bpe)), with_spaces = trained(recipe(spaced, spaced, bpe));
  ASSERT_TRUE(plain.exact_match && with_spaces.exact_match);
  EXPECT_EQ(*plain.exact_match, 1.0);
  EXPECT_EQ(*with_spaces.exact_match, 1.0);
}

}  // namespace
}  // namespace tilewave
