// What a run keeps beside metrics.jsonl where its recipe asks for it: event files, the best checkpoint, a tokenizer of one's own.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "framework/io/checkpoint.h"
#include "framework/io/run_folder.h"
#include "models/decoding/trained_model.h"
#include "models/exchange/weight_source.h"
#include "models/training/evaluation.h"
#include "models/training/trainer.h"
#include "models/training/training_state.h"
#include "tests/memory_folder.h"
#include "tests/models/training/small_runs.h"
#include "tests/shell.h"
#include "tests/test_environment.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;

struct LoggedNumbers {
  std::int64_t step = 0;
  std::map<std::string, float> values;
};

// An event file, taken apart by the lengths and fields that formats.md names.
std::vector<LoggedNumbers> events_in(const fs::path& path) {
  const std::string text = file_text(path);
  std::vector<LoggedNumbers> events;
  const auto varint = [&](std::size_t& at) {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(text.at(at++));
      value |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return value;
    }
  };
  for (std::size_t at = 0; at < text.size();) {
    std::uint64_t length = 0;
    std::memcpy(&length, text.data() + at, 8);
    std::size_t field = at + 12 + 9;  // behind wall_time
    const std::size_t end = at + 12 + length;
    LoggedNumbers numbers;
    if (text.at(field) == 0x10) {
      numbers.step = static_cast<std::int64_t>(varint(++field));
      EXPECT_EQ(text.at(field++), 0x2a);
      varint(field);
      while (field < end) {
        EXPECT_EQ(text.at(field++), 0x0a);
        varint(field);
        EXPECT_EQ(text.at(field++), 0x0a);
        const std::size_t size = varint(field);
        const std::string tag = text.substr(field, size);
        field += size;
        EXPECT_EQ(text.at(field++), 0x15);
        std::memcpy(&numbers.values[tag], text.data() + field, 4);
        field += 4;
      }
      events.push_back(std::move(numbers));
    }
    at = end + 4;
  }
  return events;
}

class RunLogs : public testing::Test {
 protected:
  TrainingResult attempt(const std::vector<std::string>& overrides, RunStart start = RunStart::fresh, std::int64_t stop_after = 0) {
    std::int64_t taken = 0;
    notes_.clear();
    return train({.recipe = small_recipe(overrides),
                  .run = {.recipe = "small", .folder = run(), .start = start},
                  .queue = make_cpu_queue(2),
                  .device = probe_cpu(2),
                  .stop_signal = [&] { return ++taken == stop_after ? SIGTERM : 0; }},
                 {.noted = [this](const std::string& note) { notes_ += note + "\n"; }});
  }
  fs::path run() const { return temporary_.path() / "run"; }

  MemoryFolder temporary_;
  std::string notes_;
};

TEST_F(RunLogs, EventsAreTheNumbersOfMetricsBeforeAndBehindAResume) {
  const std::vector<std::string> wanted = {"run.log=tensorboard", "run.validate_every=2"};
  attempt(wanted, RunStart::fresh, 5);
  const std::string stopped = file_text(run() / "metrics.jsonl");
  ASSERT_GT(stopped.size(), 100U);
  EXPECT_EQ(events_in(run() / kEventFile).size(), static_cast<std::size_t>(std::count(stopped.begin(), stopped.end(), '\n')));
  attempt(wanted, RunStart::resume);
  const std::vector<LoggedNumbers> events = events_in(run() / kEventFile);
  std::istringstream metrics(file_text(run() / "metrics.jsonl"));
  std::size_t count = 0;
  for (std::string line; std::getline(metrics, line); ++count) {
    const nlohmann::json row = nlohmann::json::parse(line);
    ASSERT_LT(count, events.size());
    const LoggedNumbers& event = events[count];
    EXPECT_EQ(event.step, row.at("step"));
    EXPECT_EQ(event.values.at("loss/training"), row.at("loss").get<float>());
    EXPECT_EQ(event.values.at("optimizer/learning_rate"), row.at("learning_rate").get<float>());
    EXPECT_EQ(event.values.at("optimizer/gradient_norm"), row.at("gradient_norm").get<float>());
    EXPECT_EQ(event.values.contains("loss/validation"), row.contains("validation_loss"));
  }
  ASSERT_EQ(events.size(), count + 1) << "the last validation comes behind the last step";
  EXPECT_EQ(events.back().step, 8);
  EXPECT_EQ(events.back().values.at("loss/validation"),
            nlohmann::json::parse(file_text(run() / "summary.json")).at("validation_loss").get<float>());
  EXPECT_FALSE(fs::exists(run() / "best"));
}

TEST_F(RunLogs, EventsHaveTheAccuracyOfPictures) {
  train({.recipe = small_classifier({"run.log=tensorboard"}),
         .run = {.recipe = "small", .folder = run()},
         .queue = make_cpu_queue(2),
         .device = probe_cpu(2)},
        {});
  const std::vector<LoggedNumbers> events = events_in(run() / kEventFile);
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.back().values.at("accuracy/validation"),
            nlohmann::json::parse(file_text(run() / "summary.json")).at("validation_accuracy").get<float>());
}

TEST_F(RunLogs, NoneIsWrittenUnasked) {
  attempt({});
  EXPECT_FALSE(fs::exists(run() / kEventFile));
}

TEST_F(RunLogs, TheBestCheckpointIsThatOfTheLeastValidationLoss) {
  // A rate that makes things worse soon, so that the best one is not the last.
  const std::vector<std::string> wanted = {"run.keep_best=true",      "run.validate_every=1",      "run.keep=1", "schedule.kind=constant",
                                           "schedule.warmup_steps=0", "optimizer.learning_rate=2", "run.steps=6"};
  const TrainingResult result = attempt(wanted);
  std::map<std::int64_t, double> losses;
  std::istringstream metrics(file_text(run() / "metrics.jsonl"));
  for (std::string line; std::getline(metrics, line);) {
    const nlohmann::json row = nlohmann::json::parse(line);
    if (row.contains("validation_loss")) losses[row.at("step")] = row.at("validation_loss");
  }
  losses[6] = result.validation.loss;
  const auto least = std::min_element(losses.begin(), losses.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  ASSERT_TRUE(result.best);
  EXPECT_EQ(result.best->step, least->first);
  EXPECT_EQ(result.best->loss, least->second);
  ASSERT_LT(least->first, 6) << "the recipe of this test should overshoot";
  const CheckpointSearch best = find_latest_valid(run() / "best");
  ASSERT_TRUE(best.newest);
  EXPECT_EQ(best.newest->step, least->first);
  EXPECT_EQ(WeightSource(run() / "best").files().front().path(), best.newest->weights());
  const nlohmann::json summary = nlohmann::json::parse(file_text(run() / "summary.json"));
  EXPECT_EQ(summary.at("best_step"), least->first);
  EXPECT_EQ(summary.at("best_validation_loss"), least->second);
  // What the best model is worth is what was said of it.
  const Evaluation again = evaluate_run(
      {.run = run(), .data = {}, .target = {}, .weights = {.path = run() / "best"}, .queue = make_cpu_queue(2), .device = probe_cpu(2)});
  EXPECT_EQ(again.loss.loss, least->second);
}

TEST_F(RunLogs, AResumedRunKnowsItsBest) {
  const std::vector<std::string> wanted = {"run.keep_best=true",      "run.validate_every=1",      "schedule.kind=constant",
                                           "schedule.warmup_steps=0", "optimizer.learning_rate=2", "run.steps=6"};
  const TrainingResult whole = attempt(wanted);
  fs::remove_all(run());
  attempt(wanted, RunStart::fresh, 4);
  const TrainingResult resumed = attempt(wanted, RunStart::resume);
  ASSERT_TRUE(whole.best && resumed.best);
  EXPECT_EQ(resumed.best->step, whole.best->step);
  EXPECT_EQ(resumed.best->loss, whole.best->loss);
}

TEST_F(RunLogs, StartingOverTakesTheBestAwayToo) {
  attempt({"run.keep_best=true", "run.validate_every=2"});
  ASSERT_TRUE(fs::exists(run() / "best" / "checkpoints"));
  write_text(run() / "mine.txt", "mine");
  train({.recipe = small_recipe(),
         .run = {.recipe = "small", .folder = run(), .start = RunStart::fresh, .overwrite = Overwrite::force},
         .queue = make_cpu_queue(2),
         .device = probe_cpu(2)},
        {});
  EXPECT_FALSE(fs::exists(run() / "best"));
  EXPECT_TRUE(fs::exists(run() / "mine.txt"));
}

// A run on text by a tokenizer.json: its folder needs no other file.
TEST_F(RunLogs, ARunKeepsATokenizerOfOnesOwn) {
  const fs::path theirs = temporary_.path() / "theirs";
  fs::create_directory(theirs);
  fs::copy_file(fs::absolute(test_environment().data) / "fixtures" / "tokenizers" / "gpt2.json", theirs / "tokenizer.json");
  std::string text;
  for (int i = 0; i < 400; ++i) text += concat("line ", i, " of a text that says little\n");
  write_text(temporary_.path() / "text.txt", text);
  const std::int64_t ids = Tokenizer::load(theirs).vocabulary();
  std::vector<std::string> wanted = kDecoderOnly;
  wanted.insert(wanted.end(), {"data.kind=text", concat("data.source='", (temporary_.path() / "text.txt").string(), "'"),
                               concat("data.tokenizer='", theirs.string(), "'"), concat("model.vocabulary=", ids + 3)});
  attempt(wanted, RunStart::fresh, 4);
  EXPECT_NE(notes_.find("those behind them are never seen"), std::string::npos) << notes_;
  fs::remove_all(theirs);
  EXPECT_EQ(attempt(wanted, RunStart::resume).steps, 8);
  const TrainedModel trained = open_trained_model(run(), make_cpu_queue(2), probe_cpu(2));
  ASSERT_TRUE(trained.tokenizer);
  EXPECT_EQ(trained.tokenizer->kind(), TokenizerKind::byte_level_bpe);
  EXPECT_EQ(evaluate_run({.run = run(), .data = {}, .target = {}, .weights = {}, .queue = make_cpu_queue(2), .device = probe_cpu(2)}).step,
            8);
  fs::remove(run() / "tokenizer.json");
  EXPECT_THROW(open_trained_model(run(), make_cpu_queue(2), probe_cpu(2)), InputError);
  EXPECT_THROW(attempt(wanted, RunStart::resume), InputError) << "gone on both sides";
}

TEST_F(RunLogs, AVocabularyThatIsAnothersIsASentence) {
  const fs::path file = fs::absolute(test_environment().data) / "fixtures" / "tokenizers" / "gpt2.json";
  write_text(temporary_.path() / "text.txt", std::string(5000, 'a'));
  const std::int64_t ids = Tokenizer::load(file).vocabulary();
  const auto said = [&](const std::vector<std::string>& more) {
    std::vector<std::string> wanted = kDecoderOnly;
    wanted.insert(wanted.end(), {"data.kind=text", concat("data.source='", (temporary_.path() / "text.txt").string(), "'"),
                                 concat("data.tokenizer='", file.string(), "'")});
    wanted.insert(wanted.end(), more.begin(), more.end());
    try {
      attempt(wanted);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_NE(said({"model.vocabulary=100"}).find(concat("model.vocabulary = 100 is smaller than the tokenizer's ", ids)), std::string::npos);
  EXPECT_NE(
      said({"model.vocabulary=900", "data.tokenizer_vocabulary=64"}).find(concat(" has ", ids, " ids; leave data.tokenizer_vocabulary")),
      std::string::npos);
  EXPECT_NE(said({"model.vocabulary=900", "data.tokenizer=nowhere"}).find("neither \"bytes\" nor \"bpe\""), std::string::npos);
  EXPECT_FALSE(fs::exists(run()));
}

}  // namespace
}  // namespace tilewave
