// A run from its folder to its summary: what it leaves, what it refuses, and that a resumed run is the uninterrupted one.
#include "models/training/trainer.h"

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "framework/io/checkpoint.h"
#include "framework/io/file.h"
#include "models/training/training_state.h"
#include "tests/framework/io/faults.h"
#include "tests/memory_folder.h"
#include "tests/models/training/small_runs.h"
#include "tests/shell.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;

struct Attempt {
  std::vector<std::string> overrides;
  RunStart start = RunStart::fresh;
  Overwrite overwrite = Overwrite::refuse;
  int threads = 2;
  std::int64_t stop_after = 0;  // steps of this attempt; 0: run on
};

class Trainer : public testing::Test {
 protected:
  TrainingResult attempt(const fs::path& folder, const Attempt& attempt = {}) {
    std::int64_t taken = 0;
    const TrainingRequest request{.recipe = small_recipe(attempt.overrides),
                                  .run = {.recipe = "small", .folder = folder, .start = attempt.start, .overwrite = attempt.overwrite},
                                  .queue = make_cpu_queue(attempt.threads),
                                  .device = probe_cpu(attempt.threads),
                                  .stop_signal = [&] { return ++taken == attempt.stop_after ? SIGTERM : 0; }};
    notes.clear();
    return train(request, {.noted = [&](const std::string& note) { notes += note + "\n"; }});
  }

  std::string refusal(const fs::path& folder, const Attempt& how) {
    try {
      attempt(folder, how);
    } catch (const InputError& error) {
      return error.what();
    }
    return "no refusal";
  }

  // The small recipe with another value of one key, which need not go with the rest.
  static Recipe changed(std::size_t section, std::size_t field) {
    Recipe recipe = small_recipe();
    std::vector<Section> sections = sections_of(recipe);
    auto& member = sections[section].fields[field].member;
    if (auto* boolean = std::get_if<bool*>(&member)) **boolean = !**boolean;
    if (auto* integer = std::get_if<std::int64_t*>(&member)) ++**integer;
    if (auto* number = std::get_if<double*>(&member)) **number = 0.5 * **number + 0.125;
    if (auto* text = std::get_if<std::string*>(&member)) **text += "1";
    if (auto* choice = std::get_if<Choice>(&member)) choice->set((choice->get() + 1) % choice->names.size());
    return recipe;
  }
  // What resuming the run by the recipe meets with, refused or else.
  static std::string refusal_of(const fs::path& folder, const Recipe& recipe) {
    try {
      train({.recipe = recipe,
             .run = {.recipe = "small", .folder = folder, .start = RunStart::resume},
             .queue = make_cpu_queue(2),
             .device = probe_cpu(2),
             .stop_signal = [] { return SIGTERM; }},
            {});
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  static std::vector<nlohmann::json> metrics(const fs::path& folder) {
    std::vector<nlohmann::json> lines;
    std::ifstream stream(folder / "metrics.jsonl");
    for (std::string line; std::getline(stream, line);) lines.push_back(nlohmann::json::parse(line));
    return lines;
  }
  static std::vector<double> losses(const fs::path& folder) {
    std::vector<double> losses;
    for (const nlohmann::json& line : metrics(folder)) losses.push_back(line.at("loss").get<double>());
    return losses;
  }
  // Weights and moments of the newest checkpoint, as bytes.
  static std::string model_bytes(const fs::path& folder) {
    const Checkpoint checkpoint = *find_latest_valid(folder).newest;
    return file_text(checkpoint.weights()) + file_text(checkpoint.optimizer());
  }

  fs::path folder(const std::string& name) const { return temporary.path() / name; }

  // Sixty short pairs; the fifth is too long on both sides, the sixth has a blank one.
  std::vector<std::string> parallel_text() const {
    std::string source, target;
    for (int i = 0; i < 60; ++i) {
      const std::string number = std::to_string(1000 + 17 * i);
      source += i == 4 ? std::string(50, 'x') + "\n" : "the number " + number + "\n";
      target += i == 5 ? "\n" : i == 4 ? std::string(50, 'y') + "\n" : "die Zahl " + number + "\n";
    }
    write_text(folder("source.txt"), source);
    write_text(folder("target.txt"), target);
    return {"data.kind=parallel",
            "data.tokenizer=bytes",
            "data.source='" + folder("source.txt").string() + "'",
            "data.target='" + folder("target.txt").string() + "'",
            "data.validation_source='" + folder("source.txt").string() + "'",
            "data.validation_target='" + folder("target.txt").string() + "'",
            "model.vocabulary=260",
            "model.max_positions=24",
            "batch.sequence=24"};
  }

  MemoryFolder temporary;
  std::string notes;
};

TEST_F(Trainer, ARunLeavesWhatItPromises) {
  const TrainingResult result = attempt(folder("run"));
  EXPECT_EQ(result.steps, 8);
  EXPECT_GT(result.validation.loss, 0.0);
  for (const char* name : {"recipe.toml", "metrics.jsonl", "summary.json", "checkpoints/step-00000008/COMPLETE"}) {
    EXPECT_TRUE(fs::exists(folder("run") / name)) << name;
  }
  EXPECT_FALSE(fs::exists(folder("run") / "checkpoints/step-00000003")) << "only the newest two are kept";
  const std::vector<nlohmann::json> lines = metrics(folder("run"));
  ASSERT_EQ(lines.size(), 8u);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(lines[i].size(), 7u);
    EXPECT_EQ(lines[i].at("step"), i + 1);
    EXPECT_EQ(lines[i].at("target_tokens"), 50);
    for (const char* key : {"loss", "learning_rate", "gradient_norm", "target_tokens_per_s", "elapsed_s"})
      EXPECT_GT(lines[i].at(key).get<double>(), 0.0);
  }
  const nlohmann::json summary = nlohmann::json::parse(file_text(folder("run") / "summary.json"));
  EXPECT_EQ(summary.at("steps"), 8);
  EXPECT_EQ(summary.at("loss"), lines.back().at("loss"));
  for (const char* key : {"validation_loss", "target_tokens_per_s", "seconds"}) EXPECT_GT(summary.at(key).get<double>(), 0.0);
  EXPECT_EQ(to_toml(read_recipe(folder("run") / "recipe.toml")), to_toml(resolve(small_recipe()).recipe));
}

// And none of the validations between them.
TEST_F(Trainer, AProfileHoldsEveryLaunchOfItsSteps) {
  std::vector<ProfiledLaunch> launches;
  const Recipe recipe = small_recipe({"run.validate_every=3"});
  const TrainingRequest request{.recipe = recipe,
                                .run = {.recipe = "small", .folder = folder("profiled")},
                                .queue = make_cpu_queue(2),
                                .device = probe_cpu(2),
                                .profile = {.first = 3, .count = 2}};
  train(request, {.profiled = [&](const std::vector<ProfiledLaunch>& of_all_steps, std::int64_t steps) {
          launches = of_all_steps;
          EXPECT_EQ(steps, 2);
        }});
  const Trace trace = trace_step(resolve(recipe), probe_cpu(2)).trace;
  ASSERT_EQ(launches.size(), 2 * trace.entries.size());
  double seconds = 0.0;
  for (std::size_t i = 0; i < launches.size(); ++i) {
    EXPECT_TRUE(launches[i].entry == trace.entries[i % trace.entries.size()]) << launches[i].entry.layer;
    EXPECT_GE(launches[i].seconds, 0.0);
    seconds += launches[i].seconds;
  }
  EXPECT_GT(seconds, 0.0);
  std::ifstream lines(folder("profiled") / "profile.jsonl");
  const std::size_t count = static_cast<std::size_t>(std::count(std::istreambuf_iterator<char>(lines), {}, '\n'));
  EXPECT_EQ(count, launches.size());

  EXPECT_EQ(attempt(folder("plain")).loss, nlohmann::json::parse(file_text(folder("profiled") / "summary.json")).at("loss").get<double>());
}

// Uninterrupted, resumed, cold: the first two agree to the bit, the third does not.
TEST_F(Trainer, ResumedIsUninterrupted) {
  for (const std::vector<std::string>& model : {std::vector<std::string>{}, kDecoderOnly}) {
    for (const char* name : {"whole", "resumed", "cold"}) fs::remove_all(folder(name));
    attempt(folder("whole"), {.overrides = model});
    EXPECT_EQ(attempt(folder("resumed"), {.overrides = model, .stop_after = 5}).signal, SIGTERM);
    EXPECT_FALSE(fs::exists(folder("resumed") / "summary.json"));
    attempt(folder("resumed"), {.overrides = model, .start = RunStart::resume, .threads = 3});
    EXPECT_EQ(losses(folder("resumed")), losses(folder("whole")));
    EXPECT_EQ(model_bytes(folder("resumed")), model_bytes(folder("whole")));

    std::vector<std::string> shorter = model;
    shorter.push_back("run.steps=3");
    attempt(folder("cold"), {.overrides = shorter});
    const std::vector<double> whole = losses(folder("whole")), cold = losses(folder("cold"));
    EXPECT_NE(cold, std::vector<double>(whole.begin() + 5, whole.end())) << "a resumed run that began anew would look like this";
  }
}

TEST_F(Trainer, ValidationsOnTheWayAreKept) {
  attempt(folder("run"), {.overrides = {"run.validate_every=3"}});
  for (const nlohmann::json& line : metrics(folder("run"))) {
    EXPECT_EQ(line.contains("validation_loss"), line.at("step").get<int>() % 3 == 0) << line;
  }
}

TEST_F(Trainer, AStartThatIsRefusedLeavesNoFolder) {
  for (const char* wrong : {"gemm.choice=stream_k", "gemm.choice=packed_tiles/7x7"}) {
    EXPECT_NE(refusal(folder("run"), {.overrides = {wrong}}), "no refusal");
    EXPECT_FALSE(fs::exists(folder("run"))) << wrong;
  }
}

TEST_F(Trainer, WhatIsLeftOutIsSaid) {
  attempt(folder("run"), {.overrides = parallel_text()});
  for (const char* said :
       {"1 of 59 training pairs are longer than batch.sequence = 24", "1 of 59 test pairs are longer than batch.sequence = 24 on a side",
        "1 of 59 validation pairs are as long", "training pairs left out for a blank side: 1."}) {
    EXPECT_NE(notes.find(said), std::string::npos) << notes;
  }
}

// What stands in state.json of a run that an earlier tilewave began: its epochs go on as they were, and a person is told.
TEST_F(Trainer, AnOlderRunsEpochsGoOnAsTheyBegan) {
  std::string text;
  for (int i = 0; i < 60; ++i) text += "the number " + std::to_string(1000 + 17 * i) + "\n";
  write_text(folder("text.txt"), text);
  std::vector<std::string> overrides = kDecoderOnly;
  overrides.insert(overrides.end(),
                   {"data.kind=text", "data.tokenizer=bytes", "data.source='" + folder("text.txt").string() + "'", "model.vocabulary=260"});
  attempt(folder("run"), {.overrides = overrides, .stop_after = 4});
  const auto resume_and_stop = [&] {
    attempt(folder("run"), {.overrides = overrides, .start = RunStart::resume, .stop_after = 2});
    return read_training_state(find_latest_valid(folder("run")).newest->state());
  };
  EXPECT_TRUE(resume_and_stop().position.rows_before);
  EXPECT_EQ(notes.find("earlier tilewave"), std::string::npos) << notes;

  SmallRun older(small_recipe(overrides));
  TrainingState state = restore_training(*find_latest_valid(folder("run")).newest, older.step);
  state.position.rows_before.reset();
  ++state.step;
  save_training(folder("run"), older.step, state, 9);
  EXPECT_EQ(resume_and_stop().position.rows_before, std::nullopt);
  EXPECT_NE(notes.find("an earlier tilewave began this run"), std::string::npos) << notes;
}

TEST_F(Trainer, StatesOfBothVersionsAreRead) {
  const auto position = [&](const std::string& version, const std::string& more) {
    write_text(folder("state.json"), R"({"version": )" + version + R"(, "step": 4, "data_position": {"epoch": 2, "next": 7)" + more +
                                         R"(}, "corpus_fingerprint": 1, "recipe_hash": "x", "vocabulary": 61, "vocabulary_padded": 61,
                                         "loss": 1.5, "elapsed_s": 0.5, "target_tokens": 9})");
    return read_training_state(folder("state.json")).position;
  };
  EXPECT_EQ(position("1", ""), (DataPosition{.epoch = 2, .next = 7, .rows_before = std::nullopt}));
  EXPECT_EQ(position("2", R"(, "rows_before": 5)"), (DataPosition{.epoch = 2, .next = 7, .rows_before = 5}));
  EXPECT_THROW(position("3", ""), InputError);
  EXPECT_THROW(position("0", ""), InputError);
}

TEST_F(Trainer, UnknownIdsAreSaid) {
  std::vector<std::string> overrides = parallel_text();
  overrides[1] = "data.tokenizer=bpe";
  overrides.push_back("data.tokenizer_vocabulary=30");
  write_text(folder("other.txt"), std::string("the number \u0394\nthe\n"));
  overrides[4] = "data.validation_source='" + folder("other.txt").string() + "'";
  overrides[5] = "data.validation_target='" + folder("other.txt").string() + "'";
  attempt(folder("run"), {.overrides = overrides});
  for (const char* said :
       {"2 of ", " ids of the validation text are unknown to the tokenizer", "'\u0394' (U+0394) in ", "other.txt, line 1"}) {
    EXPECT_NE(notes.find(said), std::string::npos) << notes;
  }
}

// The last thing a run does is known to be possible before its first step.
TEST_F(Trainer, ValidationThatNoSequenceFitsIsRefusedAtTheStart) {
  std::vector<std::string> overrides = parallel_text();
  write_text(folder("long.txt"), std::string(40, 'z') + "\n" + std::string(41, 'z') + "\n");
  overrides[4] = "data.validation_source='" + folder("long.txt").string() + "'";
  overrides[5] = "data.validation_target='" + folder("long.txt").string() + "'";
  const std::string sentence = refusal(folder("run"), {.overrides = overrides});
  EXPECT_NE(sentence.find("of the validation data, each of the 2 pairs is longer than batch.sequence"), std::string::npos) << sentence;
  EXPECT_FALSE(fs::exists(folder("run")));
}

// The step is done and saved by then; the run ends when it is resumed.
TEST_F(Trainer, ASignalBehindTheLastStepIsHeard) {
  attempt(folder("whole"), {.overrides = parallel_text()});
  for (const int questions_later : {1, 2}) {
    fs::remove_all(folder("run"));
    EXPECT_EQ(attempt(folder("run"), {.overrides = parallel_text(), .stop_after = 8 + questions_later}).signal, SIGTERM);
    EXPECT_FALSE(fs::exists(folder("run") / "summary.json"));
    EXPECT_EQ(attempt(folder("run"), {.overrides = parallel_text(), .start = RunStart::resume}).signal, 0);
    EXPECT_EQ(nlohmann::json::parse(file_text(folder("run") / "summary.json")).at("exact_match"),
              nlohmann::json::parse(file_text(folder("whole") / "summary.json")).at("exact_match"));
    EXPECT_EQ(model_bytes(folder("run")), model_bytes(folder("whole")));
  }
}

TEST_F(Trainer, FewerStepsThanWereDoneAreRefused) {
  attempt(folder("run"), {.stop_after = 6});
  const std::string sentence = refusal(folder("run"), {.overrides = {"run.steps=5"}, .start = RunStart::resume});
  EXPECT_NE(sentence.find("has done 6 steps and run.steps = 5 asks for fewer"), std::string::npos) << sentence;
}

TEST_F(Trainer, ACosineThatHasEndedIsSaid) {
  attempt(folder("run"), {.overrides = {"schedule.kind=cosine"}});
  attempt(folder("run"), {.overrides = {"schedule.kind=cosine", "run.steps=10"}, .start = RunStart::resume});
  EXPECT_NE(notes.find("ends at step 8"), std::string::npos) << notes;
}

TEST_F(Trainer, ALongerRunGoesOnWhereTheEndedOneStopped) {
  attempt(folder("whole"), {.overrides = {"run.steps=8"}});
  attempt(folder("longer"), {.overrides = {"run.steps=5"}});
  attempt(folder("longer"), {.overrides = {"run.steps=8"}, .start = RunStart::resume});
  EXPECT_EQ(losses(folder("longer")), losses(folder("whole")));
  EXPECT_EQ(model_bytes(folder("longer")), model_bytes(folder("whole")));
}

TEST_F(Trainer, PaddingPitchAndWhatIsKeptMayChangeOnTheWay) {
  attempt(folder("whole"));
  for (const char* change : {"guidelines.pad_vocabulary_to=64", "guidelines.row_pitch=packed", "guidelines.ffn_hidden_layout=feature_major",
                             "run.validate_every=2", "run.checkpoint_every=1", "run.keep=5"}) {
    fs::remove_all(folder("changed"));
    attempt(folder("changed"), {.stop_after = 4});
    attempt(folder("changed"), {.overrides = {change}, .start = RunStart::resume});
    EXPECT_EQ(losses(folder("changed")), losses(folder("whole"))) << change;
  }
}

// What asks a device is settled where a run begins; resuming on another one keeps the answer.
TEST_F(Trainer, WholeWavesAreSettledOnce) {
  const std::vector<std::string> waves = {"guidelines.wave_free_batch=nearest", "guidelines.wave_tile=64x8", "guidelines.wave_limit=0.5"};
  attempt(folder("run"), {.overrides = waves, .stop_after = 4});
  const std::string kept = file_text(folder("run") / "recipe.toml");
  const Recipe recipe = read_recipe(folder("run") / "recipe.toml");
  EXPECT_EQ(recipe.guidelines.wave_free_batch, WaveFreeBatch::off);
  EXPECT_EQ(recipe.guidelines.wave_tile, "64x8");
  std::ifstream stream(folder("run") / "adjustments.jsonl");
  std::map<std::string, std::int64_t> moved;
  for (std::string line; std::getline(stream, line);) {
    const nlohmann::json adjustment = nlohmann::json::parse(line);
    if (adjustment.at("rule") == "wave_free_batch") moved[adjustment.at("what")] = adjustment.at("to");
  }
  EXPECT_EQ(moved, (std::map<std::string, std::int64_t>{{"source rows", recipe.batch.source_tokens},
                                                        {"target rows", recipe.batch.target_tokens}}));
  EXPECT_EQ(attempt(folder("run"), {.overrides = waves, .start = RunStart::resume, .threads = 3}).steps, 8);
  EXPECT_EQ(file_text(folder("run") / "recipe.toml"), kept);
  // Other rows are another question, also where the run's answer lies within their limit.
  for (const char* rows : {"batch.target_tokens=200", "batch.target_tokens=49"}) {
    std::vector<std::string> others = waves;
    others.insert(others.end(), {rows, "run.steps=9"});
    const std::string said = refusal(folder("run"), {.overrides = others, .start = RunStart::resume});
    EXPECT_NE(said.find("begun with batch."), std::string::npos) << rows << ": " << said;
    EXPECT_NE(said.find("a resumed run cannot change it"), std::string::npos) << said;
  }
  // Who asks for the answer itself asks for no waves.
  const std::vector<std::string> answer = {concat("batch.source_tokens=", recipe.batch.source_tokens),
                                           concat("batch.target_tokens=", recipe.batch.target_tokens), "run.steps=9"};
  EXPECT_EQ(attempt(folder("run"), {.overrides = answer, .start = RunStart::resume}).steps, 9);
  // Nor does a run that asked for no waves hold an answer.
  attempt(folder("plain"), {.stop_after = 4});
  EXPECT_NE(refusal(folder("plain"), {.overrides = waves, .start = RunStart::resume}).find("wave_free_batch"), std::string::npos);
}

// Nor is the answer lost where the run is resumed before its first checkpoint.
TEST_F(Trainer, WholeWavesStaySettledWithoutACheckpoint) {
  const std::vector<std::string> waves = {"guidelines.wave_free_batch=nearest", "guidelines.wave_tile=64x8", "guidelines.wave_limit=0.5"};
  attempt(folder("run"), {.overrides = waves, .stop_after = 2});
  const std::string answers = file_text(folder("run") / "adjustments.jsonl"), recipe = file_text(folder("run") / "recipe.toml");
  for (int again = 0; again < 2; ++again) {
    fs::remove_all(folder("run") / "checkpoints");
    EXPECT_EQ(attempt(folder("run"), {.overrides = waves, .start = RunStart::resume, .stop_after = 2}).signal, SIGTERM);
    EXPECT_NE(notes.find("has no valid checkpoint yet"), std::string::npos) << notes;
    EXPECT_EQ(file_text(folder("run") / "adjustments.jsonl"), answers);
    EXPECT_EQ(file_text(folder("run") / "recipe.toml"), recipe);
  }
}

// Steps that were taken are started over by those alone who insist.
TEST_F(Trainer, ARunThatHasLostItsCheckpointsIsNotStartedOver) {
  attempt(folder("ended"), {.overrides = {"run.steps=3"}});
  fs::remove_all(folder("ended") / "checkpoints");
  attempt(folder("damaged"), {.stop_after = 4});
  for (const auto& checkpoint : fs::directory_iterator(folder("damaged") / "checkpoints"))
    write_text(checkpoint.path() / "state.json", "{}");
  for (const char* name : {"ended", "damaged"}) {
    const std::string kept = file_text(folder(name) / "metrics.jsonl");
    const std::string sentence = refusal(folder(name), {.start = RunStart::resume});
    EXPECT_NE(sentence.find("has no checkpoint that can be used, and steps would be lost"), std::string::npos) << sentence;
    EXPECT_EQ(file_text(folder(name) / "metrics.jsonl"), kept);
    const Attempt insist{.start = RunStart::resume, .overwrite = Overwrite::force, .stop_after = 2};
    EXPECT_EQ(attempt(folder(name), insist).signal, SIGTERM);
    EXPECT_EQ(run_state(folder(name)), RunState::unfinished);
  }
}

// An update may be finite and make weights that are not.
TEST_F(Trainer, WeightsThatAreNoNumbersAreNotSaved) {
  attempt(folder("run"), {.overrides = {"run.keep=1", "run.steps=3"}});
  const std::string kept = model_bytes(folder("run"));
  const Attempt diverging{.overrides = {"run.keep=1", "run.steps=4", "optimizer.learning_rate=1e39", "schedule.warmup_steps=1"},
                          .start = RunStart::resume,
                          .overwrite = Overwrite::force};
  EXPECT_THROW(attempt(folder("run"), diverging), Error);
  EXPECT_EQ(model_bytes(folder("run")), kept);
}

// The mean of a run's speed is of all its parts, as its steps and seconds are.
TEST_F(Trainer, AResumedRunIsAsFastAsItWas) {
  const double whole = attempt(folder("run")).matrix_flops_per_s;
  EXPECT_GT(whole, 0.0);
  EXPECT_EQ(attempt(folder("run"), {.start = RunStart::resume}).matrix_flops_per_s, whole);
}

TEST_F(Trainer, OtherChangesAreNamedAndRefused) {
  attempt(folder("run"), {.stop_after = 4});
  const std::string kept = model_bytes(folder("run"));
  for (const std::string key : {"optimizer.learning_rate", "model.d_ff", "batch.target_tokens", "data.seed", "run.seed"}) {
    const std::string sentence = refusal(folder("run"), {.overrides = {key + "=64"}, .start = RunStart::resume});
    EXPECT_NE(sentence.find(key), std::string::npos) << sentence;
    EXPECT_NE(sentence.find("--force"), std::string::npos) << sentence;
  }
  EXPECT_EQ(model_bytes(folder("run")), kept);
  attempt(folder("run"), {.overrides = {"optimizer.learning_rate=2e-3"}, .start = RunStart::resume, .overwrite = Overwrite::force});
}

// Every key of a recipe: those that docs/use/reliability.md names may change when a run is resumed, and no other.
TEST_F(Trainer, AResumedRunMayChangeWhatTheDocumentsSay) {
  const std::set<std::string> may_change = {"run.steps", "run.validate_every", "run.checkpoint_every", "run.keep", "run.keep_best",
                                            "run.log", "run.shard", "run.gradient_reduction", "run.rank_timeout",
                                            "guidelines.pad_vocabulary_to", "guidelines.row_pitch", "guidelines.ffn_hidden_layout",
                                            // of the waves, for which this run does not ask
                                            "guidelines.wave_layer", "guidelines.wave_role", "guidelines.wave_limit"};
  // What another value of is refused for itself, before the run is looked at; and the files, see ACorpusMayMove. Another number of ranks
  // takes other processes: tests/app/commands/ranks_test.cpp.
  const std::set<std::string> refused_anyway = {"run.ranks",
                                                "run.precision",
                                                "gemm.engine",
                                                "guidelines.wave_tile",
                                                "data.source",
                                                "data.target",
                                                "data.validation_source",
                                                "data.validation_target",
                                                "data.pictures",
                                                "data.labels",
                                                "data.validation_pictures",
                                                "data.validation_labels"};
  attempt(folder("begun"), {.stop_after = 4});
  Recipe recipe = small_recipe();
  const std::vector<Section> names = sections_of(recipe);
  std::size_t refused = 0, accepted = 0;
  for (std::size_t s = 0; s < names.size(); ++s) {
    for (std::size_t f = 0; f < names[s].fields.size(); ++f) {
      const std::string key = concat(names[s].name, ".", names[s].fields[f].name);
      if (refused_anyway.contains(key)) continue;
      fs::remove_all(folder("run"));
      fs::copy(folder("begun"), folder("run"), fs::copy_options::recursive);
      const std::string said = refusal_of(folder("run"), changed(s, f));
      if (may_change.contains(key) || key.starts_with("ablation.")) {
        EXPECT_EQ(said, "") << key;
        ++accepted;
      } else {
        EXPECT_NE(said.find(concat(" was begun with ", key, " = ")), std::string::npos) << key << ": " << said;
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 30u);
  EXPECT_GT(accepted, may_change.size());
}

TEST_F(Trainer, ACheckpointOfAnotherRecipeIsRefused) {
  attempt(folder("run"), {.stop_after = 4});
  const Attempt again{.overrides = {"optimizer.learning_rate=0.5"}, .start = RunStart::resume};
  write_text(folder("run") / "recipe.toml", to_toml(resolve(small_recipe(again.overrides)).recipe));
  const std::string sentence = refusal(folder("run"), again);
  EXPECT_NE(sentence.find("step-00000004 was trained by another recipe"), std::string::npos) << sentence;
}

TEST_F(Trainer, AnotherCorpusIsRefused) {
  const fs::path text = folder("text.txt");
  write_text(text, std::string(3000, 'a') + std::string(3000, 'b'));
  std::vector<std::string> overrides = kDecoderOnly;
  overrides.insert(overrides.end(),
                   {"data.kind=text", "data.tokenizer=bytes", "model.vocabulary=260", "data.source='" + text.string() + "'"});
  attempt(folder("run"), {.overrides = overrides, .stop_after = 4});
  write_text(text, std::string(3000, 'a') + std::string(3000, 'c'));
  const std::string sentence = refusal(folder("run"), {.overrides = overrides, .start = RunStart::resume});
  EXPECT_NE(sentence.find("another corpus"), std::string::npos) << sentence;
}

TEST_F(Trainer, ACorpusMayMove) {
  std::vector<std::string> overrides = kDecoderOnly;
  overrides.insert(overrides.end(), {"data.kind=text", "data.tokenizer=bytes", "model.vocabulary=260"});
  write_text(folder("here.txt"), std::string(3000, 'a') + std::string(3000, 'b'));
  const auto from = [&](const char* name) {
    std::vector<std::string> all = overrides;
    all.push_back("data.source='" + folder(name).string() + "'");
    return all;
  };
  attempt(folder("run"), {.overrides = from("here.txt"), .stop_after = 4});
  fs::rename(folder("here.txt"), folder("there.txt"));
  EXPECT_EQ(attempt(folder("run"), {.overrides = from("there.txt"), .start = RunStart::resume}).steps, 8);
  EXPECT_NE(file_text(folder("run") / "recipe.toml").find("there.txt"), std::string::npos);
}

TEST_F(Trainer, AllFilesOfACorpusMayMove) {
  std::vector<std::string> overrides = parallel_text();
  attempt(folder("run"), {.overrides = overrides, .stop_after = 4});
  for (const std::size_t at : {2, 3, 4, 5}) {
    const std::string name = at % 2 == 0 ? "source.txt" : "target.txt", moved = std::to_string(at) + name;
    fs::copy_file(folder(name), folder(moved));
    overrides[at].replace(overrides[at].rfind(name), name.size(), moved);
  }
  EXPECT_EQ(attempt(folder("run"), {.overrides = overrides, .start = RunStart::resume}).steps, 8);
}

// Where no checkpoint tells what the corpus was, its path must: a tokenizer of the one is none of the other.
TEST_F(Trainer, WithoutACheckpointACorpusMayNotMove) {
  std::vector<std::string> overrides = kDecoderOnly;
  overrides.insert(overrides.end(), {"data.kind=text", "data.tokenizer=bytes", "model.vocabulary=260"});
  for (const char* name : {"one.txt", "other.txt"}) write_text(folder(name), std::string(6000, name[1]));
  overrides.push_back("data.source='" + folder("one.txt").string() + "'");
  attempt(folder("run"), {.overrides = overrides, .stop_after = 2});
  fs::remove_all(folder("run") / "checkpoints");
  overrides.back() = "data.source='" + folder("other.txt").string() + "'";
  const std::string sentence = refusal(folder("run"), {.overrides = overrides, .start = RunStart::resume});
  EXPECT_NE(sentence.find("was begun with data.source = "), std::string::npos) << sentence;
}

TEST_F(Trainer, RunsAreNotOverwritten) {
  attempt(folder("run"));
  EXPECT_NE(refusal(folder("run"), {}).find("--force"), std::string::npos);
  attempt(folder("unfinished"), {.stop_after = 2});
  EXPECT_NE(refusal(folder("unfinished"), {}).find("--resume"), std::string::npos);
  attempt(folder("run"), {.overwrite = Overwrite::force});
}

TEST_F(Trainer, ADamagedCheckpointIsSkippedWithItsReason) {
  attempt(folder("whole"));
  attempt(folder("run"), {.stop_after = 7});
  std::fstream damaged(folder("run") / "checkpoints/step-00000007/weights.safetensors", std::ios::in | std::ios::out | std::ios::binary);
  damaged.seekp(-3, std::ios::end);
  damaged.put('x');
  damaged.close();
  attempt(folder("run"), {.start = RunStart::resume});
  EXPECT_NE(notes.find("step-00000007"), std::string::npos) << notes;
  EXPECT_EQ(losses(folder("run")), losses(folder("whole")));
}

// Every system call of a resumed run in turn fails, or it and all later ones do: the run fails with a sentence or ends as it should,
// a checkpoint stays, and the next attempt ends as the run that nothing happened to.
TEST_F(Trainer, AFaultAtAnyCallCostsNothingButTheAttempt) {
  const std::vector<std::string> tiny = {"model.d_model=8",        "model.d_ff=8", "model.decoder_layers=1", "model.vocabulary=20",
                                         "batch.source_tokens=13", "run.steps=6",  "batch.target_tokens=13", "run.keep=1"};
  attempt(folder("whole"), {.overrides = tiny});
  attempt(folder("begun"), {.overrides = tiny, .stop_after = 3});
  const std::string whole = model_bytes(folder("whole"));
  const Attempt resume{.overrides = tiny, .start = RunStart::resume, .threads = 1};
  for (const auto& [fault, error] : {std::pair{Fault::once, EIO}, std::pair{Fault::from_then_on, ENOSPC}}) {
    int failed = 0;
    bool struck = true;
    for (int call = 0; struck; ++call) {
      fs::remove_all(folder("run"));
      fs::copy(folder("begun"), folder("run"), fs::copy_options::recursive);
      std::string complaint;
      {
        const Faults faults({.fault = fault, .call = call, .error = error});
        try {
          attempt(folder("run"), resume);
        } catch (const InputError& error_of_input) {
          ADD_FAILURE() << "call " << call << " is nobody's input: " << error_of_input.what();
        } catch (const Error& failure) {
          complaint = failure.what();
        }
        struck = faults.struck();
      }
      EXPECT_TRUE(complaint.empty() ? fs::exists(folder("run") / "summary.json") : complaint.ends_with('.')) << complaint;
      failed += complaint.empty() ? 0 : 1;
      ASSERT_TRUE(find_latest_valid(folder("run")).newest) << "call " << call << ": " << complaint;
      attempt(folder("run"), resume);
      ASSERT_EQ(losses(folder("run")), losses(folder("whole"))) << "call " << call << ": " << complaint;
      ASSERT_TRUE(model_bytes(folder("run")) == whole) << "call " << call << ": " << complaint;
    }
    EXPECT_GT(failed, 50);
  }
}

// The same from a run's first call on, where the tokenizer has to be kept.
TEST_F(Trainer, AFaultAtAnyCallOfAFreshRunLeavesARunOrNone) {
  std::vector<std::string> tiny = parallel_text();
  tiny.insert(tiny.end(), {"model.d_model=8", "model.d_ff=8", "model.decoder_layers=1", "data.tokenizer=bpe", "model.vocabulary=60",
                           "run.steps=2", "run.keep=1"});
  attempt(folder("whole"), {.overrides = tiny});
  const std::string whole = model_bytes(folder("whole"));
  bool struck = true;
  int failed = 0;
  for (int call = 0; struck; ++call) {
    fs::remove_all(folder("run"));
    {
      const Faults faults({.fault = Fault::from_then_on, .call = call, .error = ENOSPC});
      try {
        attempt(folder("run"), {.overrides = tiny});
      } catch (const InputError& error) {
        ADD_FAILURE() << "call " << call << " is nobody's input: " << error.what();
      } catch (const Error& error) {
        ++failed;
      }
      struck = faults.struck();
    }
    const bool begun = fs::exists(folder("run") / "recipe.toml");
    attempt(folder("run"), {.overrides = tiny, .start = begun ? RunStart::resume : RunStart::fresh});
    ASSERT_TRUE(model_bytes(folder("run")) == whole) << "call " << call;
  }
  EXPECT_GT(failed, 5);
}

TEST_F(Trainer, ANonFiniteStepNamesItselfAndItsTensorAndPublishesNothing) {
  const std::vector<std::string> explosive = {"optimizer.learning_rate=1e30", "schedule.warmup_steps=0", "schedule.kind=constant",
                                              "run.checkpoint_every=1", "optimizer.clip_norm=0"};
  try {
    attempt(folder("run"), {.overrides = explosive});
    FAIL() << "a learning rate of 1e30 stayed finite";
  } catch (const InputError& error) {
    FAIL() << "this is a failed run, not bad input: " << error.what();
  } catch (const Error& error) {
    const std::string sentence = error.what();
    EXPECT_NE(sentence.find("step 2"), std::string::npos) << sentence;
    EXPECT_NE(sentence.find(" in "), std::string::npos) << sentence;
    EXPECT_NE(sentence.find("row"), std::string::npos) << sentence;
  }
  EXPECT_EQ(find_latest_valid(folder("run")).newest->step, 1);
  EXPECT_FALSE(fs::exists(folder("run") / "summary.json"));
}

// What a person, or another program, does to the folder of a run that is under way, after so many steps.
class TrainerInAFolderThatChanges : public Trainer {
 protected:
  // The sentence that the run ends with; its checkpoints are those of steps 3, 6 and 8.
  std::string sentence_after(std::int64_t steps, const std::function<void()>& change, const std::vector<std::string>& overrides = {}) {
    const TrainingRequest request{.recipe = small_recipe(overrides),
                                  .run = {.recipe = "small", .folder = folder("run")},
                                  .queue = make_cpu_queue(2),
                                  .device = probe_cpu(2)};
    const auto change_it = [&](const TrainingProgress& progress) {
      if (progress.step.step == steps) change();
    };
    try {
      train(request, {.stepped = change_it});
    } catch (const InputError& error) {
      ADD_FAILURE() << "this is a failed run, not bad input: " << error.what();
    } catch (const Error& error) {
      return error.what();
    }
    return "the run ended as if nothing had happened";
  }
};

TEST_F(TrainerInAFolderThatChanges, ARunFolderThatIsGoneEndsTheRunAndIsNotMadeAgain) {
  const std::pair<std::int64_t, std::string> cases[] = {
      {2, "the run has ended with step 2: nothing of it was saved yet, and its 2 steps are lost"},
      {5, "the run has ended with step 5: the steps behind the checkpoint of step 3 are lost"},
      {8, "the run has ended with step 8: the steps behind the checkpoint of step 6 are lost"}};
  for (const auto& [step, lost] : cases) {
    for (const char* how : {"removed", "renamed", "replaced"}) {
      for (const char* name : {"run", "elsewhere"}) fs::remove_all(folder(name));
      const std::string said = sentence_after(step, [&] {
        if (how == std::string("removed")) return void(fs::remove_all(folder("run")));
        fs::rename(folder("run"), folder("elsewhere"));
        if (how == std::string("replaced")) write_text(folder("run") / "thesis.txt", "mine");
      });
      EXPECT_NE(said.find(lost), std::string::npos) << how << ": " << said;
      EXPECT_EQ(fs::exists(folder("run")), how == std::string("replaced")) << how;
      if (how != std::string("replaced")) continue;
      EXPECT_EQ(names_in(folder("run")), std::vector<std::string>{"thesis.txt"});
      EXPECT_EQ(find_latest_valid(folder("elsewhere")).newest.has_value(), step > 3);
    }
  }
}

// The folder may be put back, and the run goes on.
TEST_F(TrainerInAFolderThatChanges, ARunFolderThatIsPutBackGoesOn) {
  attempt(folder("whole"));
  sentence_after(7, [&] { fs::rename(folder("run"), folder("elsewhere")); });
  fs::rename(folder("elsewhere"), folder("run"));
  attempt(folder("run"), {.start = RunStart::resume});
  EXPECT_EQ(losses(folder("run")), losses(folder("whole")));
  EXPECT_EQ(model_bytes(folder("run")), model_bytes(folder("whole")));
}

// A lock that another process could take is none.
TEST_F(TrainerInAFolderThatChanges, ALockThatIsGoneEndsTheRun) {
  const std::string said = sentence_after(4, [&] { fs::remove(folder("run") / ".lock"); });
  EXPECT_NE(said.find("this folder, or the .lock in it, was removed"), std::string::npos) << said;
  EXPECT_EQ(find_latest_valid(folder("run")).newest.value().step, 3);
}

TEST_F(TrainerInAFolderThatChanges, WhatIsTakenOutOfItEndsTheRunWithItsStepSaved) {
  std::vector<std::string> text = parallel_text();
  text.insert(text.end(), {"data.tokenizer=bpe", "data.tokenizer_vocabulary=60"});
  attempt(folder("whole"), {.overrides = text});
  const std::pair<std::string, std::string> cases[] = {{"metrics.jsonl", "metrics.jsonl (with the lines of steps 1 to 5)"},
                                                       {"checkpoints", "checkpoints/ (with those up to step 3)"},
                                                       {"tokenizer.model", "tokenizer.model (which --resume writes again)"},
                                                       {"recipe.toml", "recipe.toml (which makes it a run)"}};
  for (const auto& [name, lost] : cases) {
    fs::remove_all(folder("run"));
    const std::string recipe = file_text(folder("whole") / "recipe.toml");
    const std::string said = sentence_after(
        5, [&, part = name] { fs::remove_all(folder("run") / part); }, text);
    EXPECT_NE(said.find(lost), std::string::npos) << said;
    EXPECT_NE(said.find("has ended with step 5, whose checkpoint is saved"), std::string::npos) << said;
    EXPECT_EQ(find_latest_valid(folder("run")).newest.value().step, 5) << name;
    EXPECT_FALSE(fs::exists(folder("run") / "summary.json")) << name;
    if (name == "recipe.toml") write_text(folder("run") / name, recipe);
    attempt(folder("run"), {.overrides = text, .start = RunStart::resume});
    EXPECT_EQ(model_bytes(folder("run")), model_bytes(folder("whole"))) << name;
  }
}

// The last thing that can be missing: what the summary would stand beside.
TEST_F(TrainerInAFolderThatChanges, AFolderThatGoesBehindTheLastStepIsNoEndedRun) {
  const TrainingRequest request{
      .recipe = small_recipe(), .run = {.recipe = "small", .folder = folder("run")}, .queue = make_cpu_queue(2), .device = probe_cpu(2)};
  std::string said;
  try {
    train(request, {.saved = [&](const fs::path& path) { fs::rename(path, folder("elsewhere")); }});
  } catch (const Error& error) {
    said = error.what();
  }
  EXPECT_NE(said.find("no step is lost if it is only elsewhere"), std::string::npos) << said;
  EXPECT_FALSE(fs::exists(folder("run")));
  EXPECT_FALSE(fs::exists(folder("elsewhere") / "summary.json"));
}

TEST_F(Trainer, ATokenizerThatIsGoneIsWrittenAgain) {
  std::vector<std::string> overrides = parallel_text();
  overrides.insert(overrides.end(), {"data.tokenizer=bpe", "data.tokenizer_vocabulary=60"});
  attempt(folder("whole"), {.overrides = overrides});
  attempt(folder("run"), {.overrides = overrides, .stop_after = 4});
  const std::string tokenizer = file_text(folder("run") / "tokenizer.model");
  fs::remove(folder("run") / "tokenizer.model");
  attempt(folder("run"), {.overrides = overrides, .start = RunStart::resume});
  EXPECT_NE(notes.find("tokenizer.model was gone and is written again"), std::string::npos) << notes;
  EXPECT_NE(notes.find("the same as it was."), std::string::npos) << notes;
  EXPECT_EQ(file_text(folder("run") / "tokenizer.model"), tokenizer);
  EXPECT_EQ(model_bytes(folder("run")), model_bytes(folder("whole")));
}

// Of another text it would be another tokenizer: the ids that the weights know would mean something else.
TEST_F(Trainer, ATokenizerThatIsGoneWithItsTextIsNotMadeUp) {
  std::vector<std::string> overrides = parallel_text();
  overrides.insert(overrides.end(), {"data.tokenizer=bpe", "data.tokenizer_vocabulary=60"});
  attempt(folder("run"), {.overrides = overrides, .stop_after = 4});
  fs::remove(folder("run") / "tokenizer.model");
  write_text(folder("target.txt"), file_text(folder("target.txt")).replace(0, 3, "eine"));
  const std::string sentence = refusal(folder("run"), {.overrides = overrides, .start = RunStart::resume});
  EXPECT_NE(sentence.find("another corpus"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("tokenizer.model among them, which is gone from the folder"), std::string::npos) << sentence;
  EXPECT_FALSE(fs::exists(folder("run") / "tokenizer.model"));
  attempt(folder("run"), {.overrides = overrides, .start = RunStart::resume, .overwrite = Overwrite::force});
  EXPECT_NE(notes.find("its ids may mean other pieces"), std::string::npos) << notes;
  EXPECT_TRUE(fs::exists(folder("run") / "tokenizer.model"));
}

TEST_F(Trainer, LinesThatAreMissingAreSaid) {
  attempt(folder("run"), {.stop_after = 6});
  std::string kept;
  std::istringstream lines(file_text(folder("run") / "metrics.jsonl"));
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    if (++number != 2 && number != 4) kept += line + "\n";
  }
  write_text(folder("run") / "metrics.jsonl", kept);
  attempt(folder("run"), {.start = RunStart::resume, .stop_after = 1});
  EXPECT_NE(notes.find("metrics.jsonl has no line of 2 of the 6 steps done, the first of them step 2"), std::string::npos) << notes;
  fs::remove(folder("run") / "metrics.jsonl");
  attempt(folder("run"), {.start = RunStart::resume});
  EXPECT_NE(notes.find("metrics.jsonl has no line of 7 of the 7 steps done, the first of them step 1"), std::string::npos) << notes;
  attempt(folder("whole"));
  attempt(folder("whole"), {.overrides = {"run.steps=9"}, .start = RunStart::resume});
  EXPECT_EQ(notes.find("has no line of"), std::string::npos) << notes;
}

// Until it is asked for the last time nothing is written, and nothing is removed for --force.
TEST_F(Trainer, AStopBeforeTheBeginningLeavesEverythingAsItWas) {
  const auto stopped = [&](RunStart start, Overwrite overwrite) {
    const TrainingRequest request{.recipe = small_recipe({"run.steps=9"}),
                                  .run = {.recipe = "small", .folder = folder("run"), .start = start, .overwrite = overwrite},
                                  .queue = make_cpu_queue(2),
                                  .device = probe_cpu(2)};
    return train(request, {.beginning = [] { return SIGINT; }, .stepped = [](const TrainingProgress&) { ADD_FAILURE(); }});
  };
  EXPECT_EQ(stopped(RunStart::fresh, Overwrite::refuse).signal, SIGINT);
  EXPECT_FALSE(fs::exists(folder("run")));
  attempt(folder("run"));
  const auto contents = [&] {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(folder("run"))) {
      if (entry.is_regular_file()) all[entry.path().string()] = file_text(entry.path());
    }
    return all;
  };
  const auto before = contents();
  for (const RunStart start : {RunStart::fresh, RunStart::resume}) {
    const TrainingResult result = stopped(start, Overwrite::force);
    EXPECT_EQ(result.signal, SIGINT);
    EXPECT_TRUE(result.folder.empty());
    EXPECT_TRUE(contents() == before);
  }
}

// Memory that is not there costs no run that --force gives up: it is asked for before anything is removed.
TEST_F(Trainer, AModelThatDoesNotFitLeavesTheRunItWouldReplace) {
  attempt(folder("run"));
  const std::string kept = model_bytes(folder("run"));
  const std::vector<std::string> huge = {"model.d_ff=4194304", "model.d_model=4096"};
  EXPECT_THROW(attempt(folder("run"), {.overrides = huge, .overwrite = Overwrite::force}), Error);
  EXPECT_EQ(model_bytes(folder("run")), kept);
}

TEST_F(Trainer, ASignalInTheLastValidationIsHeardThere) {
  EXPECT_EQ(attempt(folder("run"), {.stop_after = 9}).signal, SIGTERM);
  EXPECT_EQ(find_latest_valid(folder("run")).newest.value().step, 8);
  EXPECT_FALSE(fs::exists(folder("run") / "summary.json"));
}

// A kill between recipe.toml and adjustments.jsonl loses nothing of what the waves were settled from.
TEST_F(Trainer, WhatTheWavesWereSettledFromIsKnownFromTheFirstFileOn) {
  const std::vector<std::string> waves = {"guidelines.wave_free_batch=nearest", "guidelines.wave_tile=64x8", "guidelines.wave_limit=0.5"};
  attempt(folder("run"), {.overrides = waves, .stop_after = 1});
  const std::string settled = file_text(folder("run") / "adjustments.jsonl"), recipe = file_text(folder("run") / "recipe.toml");
  for (const auto& entry : fs::directory_iterator(folder("run"))) {
    if (entry.path().filename() != "recipe.toml" && entry.path().filename() != "adjustments.jsonl") fs::remove_all(entry.path());
  }
  fs::rename(folder("run") / "adjustments.jsonl", folder("run") / kHiddenAdjustments);
  EXPECT_EQ(attempt(folder("run"), {.overrides = waves, .start = RunStart::resume, .stop_after = 1}).signal, SIGTERM);
  EXPECT_EQ(file_text(folder("run") / "adjustments.jsonl"), settled);
  EXPECT_EQ(file_text(folder("run") / "recipe.toml"), recipe);
}

}  // namespace
}  // namespace tilewave
