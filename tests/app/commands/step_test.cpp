// tilewave step and tilewave inspect as a person types them, and the comparison with PyTorch that docs/use/formats.md shows.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "tests/shell.h"
#include "tests/test_environment.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;

class CommandsOnFiles : public testing::Test {
 protected:
  Outcome tilewave(const std::string& arguments) { return shell(quoted(program_.string()) + " " + arguments, folder_.path()); }
  nlohmann::json json_of(const std::string& arguments) {
    const Outcome outcome = tilewave(arguments + " --json");
    EXPECT_EQ(outcome.status, 0) << outcome.output;
    return nlohmann::json::parse(outcome.output, nullptr, false);
  }
  // Exit code 2 and one sentence that holds `part`.
  void expect_refusal(const std::string& arguments, const std::string& part) {
    const Outcome outcome = tilewave(arguments);
    EXPECT_EQ(outcome.status, 2) << outcome.output;
    EXPECT_NE(outcome.output.find(part), std::string::npos) << outcome.output;
    EXPECT_EQ(std::count(outcome.output.begin(), outcome.output.end(), '\n'), 1) << outcome.output;
  }
  std::string fixture(const std::string& name) const { return quoted((data_ / "fixtures" / "step" / "decoder_only" / name).string()); }

  TemporaryFolder folder_;
  fs::path program_ = fs::absolute(test_environment().program);
  fs::path data_ = fs::absolute(test_environment().data).lexically_normal();
};

TEST_F(CommandsOnFiles, StepFromFilesToAFile) {
  const std::string step = "step " + fixture("recipe.toml") + " --weights " + fixture("weights.safetensors") + " --batch " +
                           fixture("batch.safetensors") + " --out step.safetensors";
  const nlohmann::json printed = json_of(step + " --update");
  EXPECT_EQ(printed.at("target_tokens"), 22);
  EXPECT_NEAR(printed.at("loss").get<double>(), 5.397182348, 1e-5);
  const nlohmann::json file = json_of("inspect step.safetensors");
  EXPECT_EQ(file.at("tensors").size(), 3 + 4 * 28U);  // loss, rate and norm; gradients, weights and moments
  EXPECT_EQ(file.at("metadata").at("vocabulary"), "41");
  EXPECT_EQ(file.at("tensors").at(0).at("name"), "loss");

  const Outcome plain = tilewave(step + " --set optimizer.label_smoothing=0");
  EXPECT_EQ(plain.status, 0);
  EXPECT_TRUE(plain.output.starts_with("training loss   5.")) << plain.output;
  EXPECT_EQ(json_of("inspect step.safetensors").at("tensors").size(), 1 + 28U);
  // A step between files has no dropout, whatever the recipe says.
  const Outcome smoothed = tilewave(step + " --set optimizer.label_smoothing=0.1 --set model.dropout=0.1");
  EXPECT_TRUE(smoothed.output.starts_with("training loss (smoothed)  5.")) << smoothed.output;
  EXPECT_NE(smoothed.output.find(" nats per target token\ntarget tokens             22\n"), std::string::npos) << smoothed.output;
}

TEST_F(CommandsOnFiles, DumpedWeightsAreTheStepsOwn) {
  const std::string recipe = "step " + fixture("recipe.toml"), batch = " --batch " + fixture("batch.safetensors");
  EXPECT_EQ(tilewave(recipe + " --dump-weights weights.safetensors").status, 0);
  EXPECT_EQ(json_of("inspect weights.safetensors").at("tensors").size(), 28U);
  const nlohmann::json seeded = json_of(recipe + batch + " --out a.safetensors");
  const nlohmann::json loaded = json_of(recipe + batch + " --out b.safetensors --weights weights.safetensors");
  EXPECT_EQ(seeded.at("loss"), loaded.at("loss"));
  EXPECT_NE(json_of(recipe + batch + " --out c.safetensors --set run.seed=2").at("loss"), loaded.at("loss"));
}

TEST_F(CommandsOnFiles, WrongFilesAndOptionsAreRefused) {
  const std::string recipe = "step " + fixture("recipe.toml"), batch = " --batch " + fixture("batch.safetensors");
  expect_refusal(recipe, "--batch FILE and --out FILE together");
  expect_refusal(recipe + batch, "--batch FILE and --out FILE together");
  expect_refusal(recipe + " --batch nowhere.safetensors --out a.safetensors", "nowhere.safetensors");
  expect_refusal(recipe + batch + " --out a.safetensors --weights " + fixture("batch.safetensors"), "it has no tensor");
  expect_refusal(recipe + batch + " --out a.safetensors --device cpu --set run.precision=bf16", "--set run.precision=fp32");
  expect_refusal(recipe + batch + " --out a.safetensors --set model.vocabulary=3", "the recipe's vocabulary has the ids 0 to 2");
  EXPECT_FALSE(fs::exists(folder_.path() / "a.safetensors"));
  ASSERT_EQ(tilewave(recipe + " --dump-weights w.safetensors").status, 0);
  expect_refusal(recipe + batch + " --weights w.safetensors --out ./w.safetensors", "names a file that another option names too");
  expect_refusal(recipe + batch + " --out b.safetensors --dump-weights b.safetensors", "names a file that another option names too");
  expect_refusal(recipe + " --weights w.safetensors --dump-weights w.safetensors", "names a file that another option names too");
  fs::copy_file(data_ / "fixtures/step/decoder_only/recipe.toml", folder_.path() / "own.toml");
  expect_refusal("step own.toml --dump-weights own.toml", "names a file that another option names too");
  expect_refusal("step own.toml" + batch + " --out ./own.toml", "names a file that another option names too");
  for (const char* of_a_step : {" --update", " --json", " --logits"}) {
    expect_refusal(recipe + " --dump-weights w.safetensors" + of_a_step, "and without --batch FILE there is none");
  }
}

// A run's losses are those of steps on the batches that it is trained on, from the weights it begins with.
TEST_F(CommandsOnFiles, DumpedBatchesAreTheRunsOwn) {
  for (const std::string accumulate : {"1", "2"}) {
    const std::string recipe =
        quoted((data_ / ".." / "recipes" / "tiny.toml").string()) +
        " --device cpu --set model.dropout=0 --set data.tokenizer=bytes --set model.vocabulary=260 --set batch.accumulate=" + accumulate;
    const std::string batches = std::to_string(4 * std::stoi(accumulate)), run = "run" + accumulate;
    const Outcome dumped = tilewave("train " + recipe + " --dump-batches " + batches + " b.safetensors");
    ASSERT_EQ(dumped.status, 0) << dumped.output;
    EXPECT_TRUE(dumped.output.ends_with("written " + batches + " batches to b.safetensors\n")) << dumped.output;
    EXPECT_FALSE(fs::exists(folder_.path() / "runs"));
    const Outcome trained = tilewave("train " + recipe + " --set run.steps=4 --run " + run);
    ASSERT_EQ(trained.status, 0) << trained.output;
    const Outcome steps =
        tilewave("step " + recipe + " --set run.steps=4 --batch b.safetensors --out s.safetensors --update --logits --json 2>/dev/null");
    ASSERT_EQ(steps.status, 0) << steps.output;
    std::istringstream ours(steps.output), theirs(file_text(folder_.path() / run / "metrics.jsonl"));
    std::string our_line, their_line;
    int count = 0;
    while (std::getline(ours, our_line)) {
      ++count;
      ASSERT_TRUE(std::getline(theirs, their_line));
      const nlohmann::json a = nlohmann::json::parse(our_line), b = nlohmann::json::parse(their_line);
      EXPECT_EQ(a.at("step"), b.at("step"));
      EXPECT_EQ(a.at("target_tokens"), b.at("target_tokens"));
      EXPECT_EQ(a.at("learning_rate"), b.at("learning_rate"));
      EXPECT_NEAR(a.at("loss").get<double>(), b.at("loss").get<double>(), 1e-5);
      EXPECT_NEAR(a.at("gradient_norm").get<double>(), b.at("gradient_norm").get<double>(), 1e-4);
    }
    EXPECT_EQ(count, 4);
    const nlohmann::json file = json_of("inspect s.safetensors");
    EXPECT_TRUE(
        std::ranges::any_of(file.at("tensors"), [](const nlohmann::json& tensor) { return tensor.at("name") == "batch/3/logits"; }));
    EXPECT_EQ(file.at("metadata").at("step"), "4");
  }
}

TEST_F(CommandsOnFiles, UpdatesThatCannotFollowAreRefused) {
  const std::string recipe =
      quoted((data_ / ".." / "recipes" / "tiny.toml").string()) + " --device cpu --set data.tokenizer=bytes --set model.vocabulary=260";
  ASSERT_EQ(tilewave("train " + recipe + " --dump-batches 3 b.safetensors").status, 0);
  const std::string step = "step " + recipe + " --batch b.safetensors --out s.safetensors";
  expect_refusal(step, "it holds the batches of 3 steps; add --update");
  expect_refusal(step + " --update --set batch.accumulate=2", "it holds 3 batches, and an update of this recipe takes 2");
  expect_refusal(step + " --first-step 3", "are an update's; add --update");
  expect_refusal(step + " --update --optimizer b.safetensors", "has no tensor \"first_moment/");
  ASSERT_EQ(tilewave("train " + recipe + " --set run.steps=1 --run run").status, 0);
  const std::string moments = " --update --optimizer run/checkpoints/step-00000001/optimizer.safetensors";
  expect_refusal(step + moments, "say it with --first-step N");
  EXPECT_EQ(tilewave(step + moments + " --weights run --first-step 2").status, 0);
  expect_refusal("train " + recipe + " --dump-batches 0 c.safetensors", "it takes how many, 1 to ");
  expect_refusal("train " + recipe + " --dump-batches 3 nowhere/c.safetensors", "there is no folder nowhere");
  expect_refusal("train " + recipe + " --dump-batches 3 c.safetensors --run run", "makes no run");
}

// Before anything is read or computed: the recipe that these name is not there either.
TEST_F(CommandsOnFiles, AResultThatHasNoFolderIsRefusedFirst) {
  write_text(folder_.path() / "file", "a person's");
  const std::string step = "step absent.toml --batch absent.safetensors",
                    there_is_none = ": there is no folder nowhere; make it, or name a file in another one.";
  expect_refusal(step + " --out nowhere/step.safetensors", "--out nowhere/step.safetensors" + there_is_none);
  expect_refusal("step absent.toml --dump-weights nowhere/deep/w.safetensors", "--dump-weights nowhere/deep/w.safetensors" + there_is_none);
  expect_refusal(step + " --out file/step.safetensors", "--out file/step.safetensors: file is a file, not a folder");
  expect_refusal(step + " --out .", "--out .: cannot write: Is a directory; name a file, not a folder.");
  expect_refusal("bench calibrate --save nowhere/gemms.jsonl", "--save nowhere/gemms.jsonl" + there_is_none);
  expect_refusal("ablate absent.toml --out file/results", "--out file/results: file is a file, not a folder; name a folder.");
  expect_refusal("train absent.toml --run file/run", "--run file/run: file is a file, not a folder; name a folder.");
  expect_refusal("train absent.toml --run file", "--run file: file is a file, not a folder; name a folder.");
  EXPECT_EQ(file_text(folder_.path() / "file"), "a person's");
  EXPECT_FALSE(fs::exists(folder_.path() / "nowhere"));
}

TEST_F(CommandsOnFiles, AStepRemovesWhatAKilledOneLeft) {
  const fs::path left = folder_.path() / ".step.safetensors.partial-4194305";  // no process has that number
  write_text(left, "half");
  EXPECT_EQ(tilewave("step " + fixture("recipe.toml") + " --batch " + fixture("batch.safetensors") + " --out step.safetensors").status, 0);
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(folder_.path() / "step.safetensors"));
}

TEST_F(CommandsOnFiles, InspectTellsWhatFilesHold) {
  const nlohmann::json batch = json_of("inspect " + fixture("batch.safetensors"));
  EXPECT_EQ(batch.at("sequences"), 4);
  EXPECT_EQ(batch.at("target_tokens"), 23);
  EXPECT_EQ(batch.at("tensors").at(0).at("shape"), nlohmann::json({4, 12}));

  std::string tokens(1024 + 2 * 3, '\0');
  const std::string header = {'\x88', '\xd8', '\x34', '\x01', 1, 0, 0, 0, 3, 0, 0, 0};
  tokens.replace(0, header.size(), header);
  tokens.replace(1024, 6, std::string{7, 0, '\xff', '\x01', 9, 0});
  write_text(folder_.path() / "ids.bin", tokens);
  const nlohmann::json ids = json_of("inspect ids.bin");
  EXPECT_EQ(ids.at("tokens"), 3);
  EXPECT_EQ(ids.at("bytes_a_token"), 2);
  EXPECT_EQ(ids.at("largest_id"), 511);
  EXPECT_EQ(ids.at("first_ids"), nlohmann::json({7, 511, 9}));

  const Outcome table = tilewave("inspect " + fixture("weights.safetensors"));
  EXPECT_EQ(table.status, 0);
  EXPECT_NE(table.output.find("decoder.1.ffn.up.weight"), std::string::npos) << table.output;
  EXPECT_NE(table.output.find("[64,16]"), std::string::npos) << table.output;
}

// Types that tilewave does not compute in, two of them narrower than a byte, behind metadata that is null.
TEST_F(CommandsOnFiles, InspectListsEveryTypeOfTheFormat) {
  const std::string header =
      R"({"__metadata__":null,"a":{"dtype":"F4","shape":[2,3],"data_offsets":[0,3]},"b":{"dtype":"F6_E2M3","shape":[4],"data_offsets":[3,6]},)"
      R"("c":{"dtype":"F8_E8M0","shape":[5],"data_offsets":[6,11]},"d":{"dtype":"F8_E5M2FNUZ","shape":[],"data_offsets":[11,12]},)"
      R"("e":{"dtype":"C64","shape":[1],"data_offsets":[12,20]}})";
  std::string file(8, '\0');
  file[0] = static_cast<char>(header.size() & 0xff);
  file[1] = static_cast<char>(header.size() >> 8);
  write_text(folder_.path() / "types.safetensors", file + header + std::string(20, 'x'));
  const nlohmann::json report = json_of("inspect types.safetensors");
  EXPECT_EQ(report.at("metadata"), nlohmann::json::object());
  EXPECT_EQ(report.at("elements"), 6 + 4 + 5 + 1 + 1);
  const nlohmann::json expected = {{{"name", "a"}, {"type", "F4"}, {"shape", {2, 3}}, {"bytes", 3}},
                                   {{"name", "b"}, {"type", "F6_E2M3"}, {"shape", {4}}, {"bytes", 3}},
                                   {{"name", "c"}, {"type", "F8_E8M0"}, {"shape", {5}}, {"bytes", 5}},
                                   {{"name", "d"}, {"type", "F8_E5M2FNUZ"}, {"shape", nlohmann::json::array()}, {"bytes", 1}},
                                   {{"name", "e"}, {"type", "C64"}, {"shape", {1}}, {"bytes", 8}}};
  EXPECT_EQ(report.at("tensors"), expected);
}

TEST_F(CommandsOnFiles, InspectSeesARun) {
  const fs::path recipe = data_ / ".." / "recipes" / "tiny.toml";
  if (!fs::exists(recipe)) GTEST_SKIP() << "recipes/ is not beside --data";
  const Outcome trained = tilewave("train " + quoted(recipe.string()) + " --run run --set run.steps=4 --set run.checkpoint_every=2");
  ASSERT_EQ(trained.status, 0) << trained.output;
  const nlohmann::json run = json_of("inspect run");
  EXPECT_EQ(run.at("state"), "ended");
  EXPECT_EQ(run.at("checkpoint_step"), 4);
  EXPECT_EQ(run.at("last_metrics").at("step"), 4);
  EXPECT_EQ(run.at("summary").at("steps"), 4);
  EXPECT_EQ(json_of("inspect run/tokenizer.model").at("pieces").size(), 96U);
  EXPECT_EQ(json_of("inspect run/checkpoints/step-00000002").at("step"), 2);

  fs::remove(folder_.path() / "run" / "summary.json");
  fs::remove(folder_.path() / "run" / "checkpoints" / "step-00000004" / "state.json");
  const nlohmann::json unfinished = json_of("inspect run");
  EXPECT_EQ(unfinished.at("state"), "unfinished");
  EXPECT_EQ(unfinished.at("checkpoint_step"), 2);
  EXPECT_EQ(unfinished.at("checkpoints_skipped").size(), 1U);
  expect_refusal("inspect run/checkpoints/step-00000004", "step-00000004");
}

TEST_F(CommandsOnFiles, InspectRefusesWhatItDoesNotKnow) {
  write_text(folder_.path() / "broken.safetensors", "no header");
  write_text(folder_.path() / "broken.bin", "no header");
  write_text(folder_.path() / "broken.model", "no model");
  write_text(folder_.path() / "notes.txt", "text");
  write_text(folder_.path() / "folder" / "notes.txt", "text");
  for (const char* name : {"broken.safetensors", "broken.bin", "broken.model", "notes.txt", "folder", "absent.bin", "absent"}) {
    expect_refusal(std::string("inspect ") + name, name);
  }
}

// docs/use/formats.md: twenty lines of Python.
TEST_F(CommandsOnFiles, TheDocumentedComparisonWithPyTorchHolds) {
  const fs::path root = data_ / "..";
  if (!fs::exists(root / "docs/use/formats.md")) GTEST_SKIP() << "docs/ is not beside --data";
  const std::string text = file_text(root / "docs/use/formats.md");
  const std::string opening = "```python\n";
  const std::size_t begin = text.find(opening), end = text.find("```\n", begin + opening.size());
  ASSERT_NE(end, std::string::npos);
  write_text(folder_.path() / "compare.py", text.substr(begin + opening.size(), end - begin - opening.size()));
  const char* named = std::getenv("TILEWAVE_PYTHON");
  const std::string python = quoted(named != nullptr ? named : "python3");
  if (shell(python + " -c 'import torch, safetensors'", folder_.path()).status != 0) {
    GTEST_SKIP() << python << " has no torch or no safetensors: the comparison that docs/use/formats.md shows was NOT run";
  }
  write_program(folder_.path() / "tilewave", "#!/bin/sh\nexec " + quoted(program_.string()) + " \"$@\"\n");
  fs::create_symlink(fs::canonical(root / "recipes"), folder_.path() / "recipes");
  const Outcome outcome = shell(python + " compare.py", folder_.path());
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("largest error of a gradient"), std::string::npos) << outcome.output;
}

}  // namespace
}  // namespace tilewave
