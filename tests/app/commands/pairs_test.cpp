// Pairs of sentences with a tokenizer that was made elsewhere: trained until they are known by heart, resumed, translated, evaluated.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/shell.h"
#include "tests/test_environment.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRecipe = R"(
model = {d_model = 32, d_ff = 64, heads = 2, encoder_layers = 1, decoder_layers = 1, vocabulary = 520, max_positions = 24}
data = {kind = "parallel", source = "source.txt", target = "target.txt", validation_source = "source.txt", validation_target = "target.txt"}
batch = {source_tokens = 64, target_tokens = 64, sequence = 24}
optimizer = {learning_rate = 0.01}
schedule = {kind = "constant"}
run = {steps = 120, validate_every = 0, checkpoint_every = 60, keep = 9}
)";

class PairsWithOwnTokenizer : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(program_)) GTEST_SKIP() << "no tilewave at --program " << program_;
    write_text(file("source.txt"), "one line\nthe model\ntwo words\nnothing\n");
    write_text(file("target.txt"), "eine Zeile\ndas Modell\nzwei Wörter\nnichts\n");
    write_text(file("pairs.toml"), kRecipe);
    fs::create_directory(file("own"));
    std::string text = file_text(fs::absolute(test_environment().data) / "fixtures" / "tokenizers" / "gpt2.json");
    for (std::size_t at = 0; (at = text.find("<|eot|>", at)) != std::string::npos;) text.replace(at, 7, "<|endoftext|>");
    write_text(file("own/tokenizer.json"), text);
  }
  fs::path file(const std::string& name) const { return folder_.path() / name; }
  Outcome tilewave(const std::string& arguments) const {
    return shell(quoted(program_.string()) + " " + arguments + " 2>&1", folder_.path());
  }
  std::string done(const std::string& arguments) const {
    const Outcome outcome = tilewave(arguments);
    EXPECT_EQ(outcome.status, 0) << arguments << "\n" << outcome.output;
    return outcome.output;
  }
  std::string weights(const std::string& run) const { return file_text(file(run) / "checkpoints/step-00000120/weights.safetensors"); }

  TemporaryFolder folder_;
  fs::path program_ = fs::absolute(test_environment().program);
};

TEST_F(PairsWithOwnTokenizer, AreLearnedResumedTranslatedAndEvaluated) {
  const std::string train = "train pairs.toml --device cpu --threads 1 --set data.tokenizer=own --run ";
  done(train + "run");
  const std::string translations = file_text(file("target.txt"));
  for (const char* beams : {"1", "3"}) {
    EXPECT_EQ(done(concat("translate run --device cpu --beams ", beams, " < source.txt")), translations);
  }
  EXPECT_EQ(nlohmann::json::parse(file_text(file("run/summary.json"))).at("exact_match"), 1.0);
  const std::string evaluated = done("evaluate run --device cpu --json");
  EXPECT_LT(nlohmann::json::parse(evaluated.substr(evaluated.find('{'))).at("loss"), 0.5) << evaluated;

  done(train + "cut --set run.steps=60");
  fs::remove_all(file("own"));  // the run keeps a copy
  done("train --resume --device cpu --threads 1 --run cut --set run.steps=120");
  EXPECT_TRUE(weights("cut") == weights("run"));
}

TEST_F(PairsWithOwnTokenizer, AreRefusedWithoutAnEnd) {
  write_text(file("own/tokenizer_config.json"), R"({"eos_token": null})");
  const Outcome outcome = tilewave("train pairs.toml --device cpu --set data.tokenizer=own --run run");
  EXPECT_EQ(outcome.status, 2) << outcome.output;
  EXPECT_NE(outcome.output.find("has no token that ends a text"), std::string::npos) << outcome.output;
  EXPECT_FALSE(fs::exists(file("run"))) << "before the first byte";
}

}  // namespace
}  // namespace tilewave
