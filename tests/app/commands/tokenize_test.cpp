// tilewave tokenize, and a run on what it wrote: text to token files, a step on them, ids and text out of the model.
#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "framework/data/byte_level_bpe.h"
#include "framework/data/token_file.h"
#include "tests/app/process.h"
#include "tests/shell.h"
#include "tests/test_environment.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;

class TokenizeCommand : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(test_environment().program)) GTEST_SKIP() << "the program is not at --program";
    for (const char* family : {"gpt2", "llama3", "gpt2_prefix"}) {
      const std::string name = std::string(family) + ".json";
      fs::copy_file(test_environment().data / "fixtures" / "tokenizers" / name, folder() / name);
    }
    std::string text;
    for (int i = 0; i < 300; ++i) text += concat("Line ", i, " of it: the l\u00F6wen's 12345 \u65E5\u672C\u8A9E.\n");
    write_text(folder() / "text.txt", text);
  }
  fs::path folder() const { return folder_.path(); }
  Outcome tilewave(const std::string& arguments) const {
    return shell(quoted(fs::absolute(test_environment().program).string()) + " " + arguments, folder());
  }
  void expect_refusal(const std::string& arguments, const std::string& words) const {
    const Outcome outcome = tilewave(arguments);
    EXPECT_EQ(outcome.status, 2) << arguments << ": " << outcome.output;
    EXPECT_NE(outcome.output.find(words), std::string::npos) << arguments << ": " << outcome.output;
  }

 private:
  TemporaryFolder folder_;
};

TEST_F(TokenizeCommand, WritesTokenFilesAndSaysWhatItDid) {
  const Outcome outcome =
      tilewave("tokenize text.txt text.txt --tokenizer llama3.json --out data/train --shard-tokens 1000 --name a --json");
  ASSERT_EQ(outcome.status, 0) << outcome.output;
  const nlohmann::json report = nlohmann::json::parse(outcome.output);
  const ByteLevelBpe tokenizer = ByteLevelBpe::load(folder() / "llama3.json");
  std::vector<std::int32_t> expected = tokenizer.encode(file_text(folder() / "text.txt"), SpecialIds::kept);
  expected.insert(expected.end(), expected.begin(), expected.begin() + std::ssize(expected));
  EXPECT_EQ(report.at("tokens"), expected.size());
  EXPECT_EQ(report.at("documents"), 2);
  EXPECT_EQ(report.at("ids_before"), tokenizer.before());
  const TokenFiles files(folder() / "data" / "train" / "a_*.bin", tokenizer.vocabulary());
  std::vector<std::int32_t> ids(static_cast<std::size_t>(files.size()));
  files.read(0, ids);
  EXPECT_EQ(ids, expected);
  EXPECT_EQ(report.at("files").size(), (expected.size() + 999) / 1000);

  const Outcome told = tilewave("tokenize text.txt --tokenizer gpt2.json --out more --begin '<|eot|>'");
  EXPECT_EQ(told.status, 0) << told.output;
  EXPECT_NE(told.output.find("tokens of 1 document"), std::string::npos) << told.output;
  EXPECT_NE(told.output.find("before each document: 420"), std::string::npos) << told.output;
  EXPECT_NE(told.output.find("more/tokens_000000.bin"), std::string::npos) << told.output;
}

TEST_F(TokenizeCommand, ChecksATokenizer) {
  for (const char* name : {"gpt2.json", "llama3.json", "bytes"}) {
    const Outcome outcome = tilewave(std::string("tokenize --check ") + name);
    EXPECT_EQ(outcome.status, 0) << outcome.output;
    EXPECT_NE(outcome.output.find("comes back as it was"), std::string::npos) << outcome.output;
  }
  const nlohmann::json report = nlohmann::json::parse(tilewave("tokenize --check llama3.json text.txt --json").output);
  EXPECT_EQ(report.at("texts").at(0).at("name"), "text.txt");
  EXPECT_EQ(report.at("texts").at(0).at("comes_back"), true);

  const Outcome changed = tilewave("tokenize --check gpt2_prefix.json text.txt");
  EXPECT_EQ(changed.status, 1) << "a space is put before the text: " << changed.output;
  EXPECT_NE(changed.output.find("comes back different from byte 1 on"), std::string::npos) << changed.output;
}

TEST_F(TokenizeCommand, RefusesWithASentence) {
  expect_refusal("tokenize text.txt --out data", "--tokenizer is missing");
  expect_refusal("tokenize text.txt --tokenizer bytes", "--out is missing");
  expect_refusal("tokenize --tokenizer bytes --out data", "FILES are missing");
  expect_refusal("tokenize absent.txt --tokenizer bytes --out data", "absent.txt");
  expect_refusal("tokenize text.txt --tokenizer absent.json --out data", "absent.json");
  expect_refusal("tokenize text.txt --tokenizer text.txt --out data", "is no tokenizer, or a damaged one");
  expect_refusal("tokenize text.txt --tokenizer gpt2.json --out . ", "holds something");
  expect_refusal("tokenize text.txt --tokenizer gpt2.json --out data --begin '<|eo|>'", "--begin <|eo|> is no token");
  expect_refusal("tokenize text.txt --tokenizer gpt2.json --out data --name a/b", "cannot be named");
  expect_refusal("tokenize --check gpt2.json --tokenizer bytes", "--check");
  EXPECT_FALSE(fs::exists(folder() / "data"));
}

TEST_F(TokenizeCommand, ARunOnTokenFilesTakesIdsAndText) {
  const fs::path recipe = fs::absolute(test_environment().data) / ".." / "recipes" / "tiny.toml";
  if (!fs::exists(recipe)) GTEST_SKIP() << "recipes/ is not beside --data";
  ASSERT_EQ(tilewave("tokenize text.txt --tokenizer gpt2.json --out data").status, 0);
  const Outcome trained = tilewave("train " + quoted(recipe.string()) +
                                   " --run run --device cpu --set run.steps=2 --set model.architecture=decoder_only --set "
                                   "model.encoder_layers=0 --set batch.source_tokens=0 --set data.kind=tokens --set "
                                   "'data.source=data/tokens_*.bin' --set model.vocabulary=421");
  ASSERT_EQ(trained.status, 0) << trained.output;

  // Every id may be drawn, those among them that are special in tilewave's own tokenizers.
  const std::string draw = "generate run --device cpu --tokens 400 --temperature 50 --ids '40, 41 2'";
  const Outcome drawn = tilewave(draw);
  ASSERT_EQ(drawn.status, 0) << drawn.output;
  std::vector<std::int32_t> ids;
  std::istringstream numbers(drawn.output);
  for (std::int32_t id = 0; numbers >> id;) ids.push_back(id);
  ASSERT_EQ(ids.size(), 403u) << "no id ends a text whose tokenizer is not known";
  EXPECT_EQ((std::vector<std::int32_t>(ids.begin(), ids.begin() + 3)), (std::vector<std::int32_t>{40, 41, 2}));
  EXPECT_TRUE(std::ranges::any_of(ids, [](std::int32_t id) { return id < 4 && id != 2; })) << drawn.output;
  EXPECT_TRUE(std::ranges::all_of(ids, [](std::int32_t id) { return id < 421; }));
  EXPECT_EQ(tilewave(draw).output, drawn.output);

  // The same draws as text.
  const ByteLevelBpe tokenizer = ByteLevelBpe::load(folder() / "gpt2.json");
  std::string prompt;
  for (const std::int32_t id : tokenizer.encode("The l\u00F6wen", SpecialIds::kept)) prompt += concat(id, " ");
  std::istringstream numbers_of_text(tilewave("generate run --device cpu --tokens 60 --ids '" + prompt + "'").output);
  ids.clear();
  for (std::int32_t id = 0; numbers_of_text >> id;) ids.push_back(id);
  const Outcome text = tilewave("generate run --device cpu --tokens 60 --tokenizer gpt2.json --prompt 'The l\u00F6wen'");
  EXPECT_EQ(text.status, 0);
  EXPECT_EQ(text.output, tokenizer.decode(ids, SpecialIds::kept) + "\n");

  expect_refusal("generate run --prompt a", "--ids");
  expect_refusal("generate run --ids ' , '", "names no id");
  expect_refusal("generate run --ids '1 421'", "421 is no id of this model, which has 0 to 420");
  expect_refusal("generate run --ids '1 x'", "x is no id");
  expect_refusal("generate run --ids 1 --prompt a", "--prompt");
  expect_refusal("generate run --tokenizer gpt2.json", "--prompt is empty");
  expect_refusal("generate run --tokenizer llama3.json --prompt a", "more than the model's 421");
}

}  // namespace
}  // namespace tilewave
