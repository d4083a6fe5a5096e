// A model of transformers as a person takes it through: import, train with its weights, resume without them, export.
#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/shell.h"
#include "tests/test_environment.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;

class ExchangeCommands : public testing::Test {
 protected:
  void SetUp() override { fs::copy(fs::absolute(test_environment().data) / "fixtures" / "gpt2" / "sharded", folder_.path() / "theirs"); }
  Outcome tilewave(const std::string& arguments) { return shell(quoted(program_.string()) + " " + arguments, folder_.path()); }
  void expect_done(const std::string& arguments) {
    const Outcome outcome = tilewave(arguments);
    EXPECT_EQ(outcome.status, 0) << arguments << "\n" << outcome.output;
  }
  void expect_refusal(const std::string& arguments, const std::string& part) {
    const Outcome outcome = tilewave(arguments);
    EXPECT_EQ(outcome.status, 2) << outcome.output;
    EXPECT_NE(outcome.output.find(part), std::string::npos) << outcome.output;
  }
  // Trains the imported model on made-up ids, a checkpoint a step.
  std::string train(const std::string& run, int steps) const {
    return concat("train gpt.toml --device cpu --threads 1 --run ", run, " --set data.kind=synthetic --set batch.target_tokens=24",
                  " --set schedule.kind=constant --set run.checkpoint_every=1 --set run.keep=9 --set run.steps=", steps);
  }
  std::string weights_after(const std::string& run, int step) const {
    return file_text(folder_.path() / run / "checkpoints" / concat("step-0000000", step) / "weights.safetensors");
  }

  TemporaryFolder folder_;
  fs::path program_ = fs::absolute(test_environment().program);
};

TEST_F(ExchangeCommands, ImportSaysWhatItUsedAndPrintsOrWritesTheRecipe) {
  const Outcome printed = tilewave("import theirs");
  EXPECT_EQ(printed.status, 0) << printed.output;
  EXPECT_NE(printed.output.find("\nd_model = 16\n"), std::string::npos) << printed.output;
  EXPECT_NE(printed.output.find("used: activation_function, "), std::string::npos) << printed.output;
  EXPECT_NE(printed.output.find("changes nothing here: bos_token_id, "), std::string::npos) << printed.output;
  expect_done("import theirs --recipe gpt.toml");
  expect_refusal("import theirs --recipe gpt.toml", "--recipe gpt.toml: is there already");
  expect_refusal("import nowhere", "nowhere");
  expect_refusal("train gpt.toml --weights theirs", "data.source");
}

TEST_F(ExchangeCommands, TrainedWithoutALearningRateItIsExportedAsItCame) {
  expect_done("import theirs --recipe gpt.toml");
  expect_done(train("run", 1) + " --set optimizer.learning_rate=0 --weights theirs");
  const nlohmann::json origin = nlohmann::json::parse(file_text(folder_.path() / "run" / "weights.json"));
  EXPECT_EQ(origin.at("names"), "GPT-2");
  EXPECT_EQ(origin.at("files").size(), 3U);
  EXPECT_TRUE(origin.at("source").get<std::string>().ends_with("/theirs"));
  const nlohmann::json run = nlohmann::json::parse(tilewave("inspect run --json").output, nullptr, false);
  EXPECT_EQ(run.at("weights"), origin.at("source"));
  expect_done("export run out");
  expect_refusal("export run out", "already");
  expect_done("step gpt.toml --set data.kind=synthetic --weights theirs --dump-weights a.safetensors");
  expect_done("step gpt.toml --set data.kind=synthetic --weights out --dump-weights b.safetensors");
  expect_done("step gpt.toml --set data.kind=synthetic --weights run --dump-weights c.safetensors");
  expect_done("step gpt.toml --set data.kind=synthetic --dump-weights d.safetensors");
  const std::string theirs = file_text(folder_.path() / "a.safetensors");
  EXPECT_EQ(theirs, file_text(folder_.path() / "b.safetensors"));
  EXPECT_EQ(theirs, file_text(folder_.path() / "c.safetensors"));
  EXPECT_NE(theirs, file_text(folder_.path() / "d.safetensors"));
}

TEST_F(ExchangeCommands, ALlamaIsTrainedAndExported) {
  const std::string theirs = quoted((fs::absolute(test_environment().data) / "fixtures" / "llama" / "qwen3").string());
  expect_done("import " + theirs + " --recipe gpt.toml");
  EXPECT_NE(file_text(folder_.path() / "gpt.toml").find(", a Qwen3: there is no tokenizer.json beside it: data.source names"),
            std::string::npos);
  expect_done(train("run", 2) + " --set batch.sequence=24 --weights " + theirs);
  EXPECT_EQ(nlohmann::json::parse(file_text(folder_.path() / "run" / "weights.json")).at("names"), "Llama");
  expect_done("export run out");
  expect_done("step gpt.toml --set data.kind=synthetic --weights out --dump-weights a.safetensors");
  expect_done("step gpt.toml --set data.kind=synthetic --weights run --dump-weights b.safetensors");
  expect_done("step gpt.toml --set data.kind=synthetic --weights " + theirs + " --dump-weights c.safetensors");
  EXPECT_EQ(file_text(folder_.path() / "a.safetensors"), file_text(folder_.path() / "b.safetensors"));
  EXPECT_NE(file_text(folder_.path() / "a.safetensors"), file_text(folder_.path() / "c.safetensors")) << "it was trained";
  expect_done("generate run --ids '5 6' --tokens 3");
}

TEST_F(ExchangeCommands, AResumedRunNeedsNeitherTheWeightsNorTheRecipe) {
  expect_done("import theirs --recipe gpt.toml");
  expect_done(train("whole", 4) + " --weights theirs");
  expect_done(train("own", 4));
  EXPECT_NE(weights_after("own", 4), weights_after("whole", 4)) << "the weights count";
  expect_done(train("cut", 2) + " --weights theirs");
  fs::remove_all(folder_.path() / "theirs");
  fs::remove(folder_.path() / "gpt.toml");
  expect_done("train --device cpu --threads 1 --resume --run cut --set run.steps=4");
  EXPECT_EQ(weights_after("cut", 4), weights_after("whole", 4));
  for (const char* step : {"1", "2", "3", "4"}) fs::remove_all(folder_.path() / "cut/checkpoints" / concat("step-0000000", step));
  expect_done("train cut --device cpu --threads 1 --resume");
  EXPECT_EQ(weights_after("cut", 4), weights_after("whole", 4)) << "from the weights that it began with, whose file is gone";
  fs::remove_all(folder_.path() / "cut" / "checkpoints");
  expect_refusal("train cut --device cpu --resume --force", "was begun with weights of a file");
}

TEST_F(ExchangeCommands, APartThatFitsIsLoadedAndTheRestSaid) {
  expect_done("import theirs --recipe gpt.toml");
  const std::string other = train("run", 1) + " --set model.vocabulary=41 --weights theirs";
  expect_refusal(other, "\"transformer.wte.weight\" [37, 16] where the model has [41, 16]");
  EXPECT_FALSE(fs::exists(folder_.path() / "run"));
  const Outcome partial = tilewave(other + " --weights-partial");
  EXPECT_EQ(partial.status, 0) << partial.output;
  EXPECT_NE(partial.output.find("27 parameters loaded, 1 left at their initial values"), std::string::npos) << partial.output;
  EXPECT_NE(partial.output.find("not loaded: \"transformer.wte.weight\""), std::string::npos) << partial.output;
}

TEST_F(ExchangeCommands, WordsThatDoNotGoTogetherAreRefused) {
  expect_done("import theirs --recipe gpt.toml");
  expect_refusal("train", "tilewave train: recipe is required");
  expect_refusal("train --resume", "recipe is required");
  expect_refusal("train theirs", "is a folder; to go on with the run in it, add --resume");
  expect_refusal("train --resume --run theirs", "holds no run to resume");
  expect_refusal("train gpt.toml --set data.kind=synthetic --weights theirs --resume", "--weights theirs are a new run's");
  expect_refusal("train gpt.toml --weights theirs --dry-run", "--weights");
  expect_refusal("train gpt.toml --weights-partial", "--weights-partial goes with --weights PATH");
  expect_refusal("step gpt.toml --weights nowhere --dump-weights a", "--weights nowhere: there is no such file or folder");
  expect_refusal("export theirs out", "no run folder");
}

// Of a run that reads text, with another run's weights: those decide what it says.
TEST_F(ExchangeCommands, ARunSpeaksWithOtherWeights) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += concat("line ", i, " of a text\n");
  write_text(folder_.path() / "text.txt", text);
  write_text(folder_.path() / "text.toml", R"(
model = {architecture = "decoder_only", d_model = 16, d_ff = 32, heads = 2, encoder_layers = 0, decoder_layers = 1, vocabulary = 260, max_positions = 16, activation = "gelu_tanh", positions = "learned"}
data = {kind = "text", source = "text.txt", tokenizer = "bytes"}
batch = {source_tokens = 0, target_tokens = 64, sequence = 16}
run = {steps = 3, validate_every = 0}
)");
  for (const char* seed : {"1", "2"}) {
    expect_done(concat("train text.toml --device cpu --run run", seed, " --set optimizer.learning_rate=0.02 --set run.seed=", seed));
  }
  const auto said = [&](const std::string& words) {
    return tilewave("generate " + words + " --device cpu --temperature 0 --tokens 12 --prompt line 2>errors").output;
  };
  EXPECT_EQ(said("run1 --weights run2"), said("run2"));
  EXPECT_NE(said("run1"), said("run2"));
}

}  // namespace
}  // namespace tilewave
