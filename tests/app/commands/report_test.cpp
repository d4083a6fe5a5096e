// What a run says when it has ended, and tilewave report, evaluate and generate as a person types them behind it.
#include <cmath>
#include <filesystem>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/shell.h"
#include "tests/test_environment.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;

class AfterARun : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(test_environment().program)) GTEST_SKIP() << "the program is not at --program";
    std::string text;
    for (int i = 0; i < 300; ++i) text += concat("line ", i, " of a text\n");
    write_text(folder() / "text.txt", text);
    write_text(folder() / "text.toml", R"(
model = {architecture = "decoder_only", d_model = 16, d_ff = 32, heads = 2, encoder_layers = 0, decoder_layers = 1, vocabulary = 260, max_positions = 16, activation = "gelu_tanh", positions = "learned"}
data = {kind = "text", source = "text.txt", tokenizer = "bytes"}
batch = {source_tokens = 0, target_tokens = 64, sequence = 16}
run = {steps = 6, validate_every = 2}
)");
    std::string source, target;
    for (int i = 0; i < 60; ++i) {
      source += concat("the number ", i, "\n");
      target += concat("die Zahl ", i, "\n");
    }
    write_text(folder() / "source.txt", source);
    write_text(folder() / "target.txt", target);
    write_text(folder() / "pairs.toml", R"(
model = {d_model = 16, d_ff = 32, heads = 2, encoder_layers = 1, decoder_layers = 1, vocabulary = 260, max_positions = 24}
data = {kind = "parallel", source = "source.txt", target = "target.txt", tokenizer = "bytes"}
batch = {source_tokens = 64, target_tokens = 64, sequence = 24}
run = {steps = 4, validate_every = 0}
)");
  }
  const fs::path& folder() const { return folder_.path(); }
  // Without matplotlib, which takes longer than what is trained here.
  Outcome tilewave(const std::string& arguments) {
    write_text(folder() / "absent" / "matplotlib.py", "raise ImportError('absent')\n");
    return shell("PYTHONPATH=absent " + quoted(program_.string()) + " " + arguments, folder());
  }
  std::string done(const std::string& arguments) {
    const Outcome outcome = tilewave(arguments);
    EXPECT_EQ(outcome.status, 0) << arguments << "\n" << outcome.output;
    return outcome.output;
  }
  void expect_refusal(const std::string& arguments, const std::string& part) {
    const Outcome outcome = tilewave(arguments);
    EXPECT_EQ(outcome.status, 2) << outcome.output;
    EXPECT_NE(outcome.output.find(part), std::string::npos) << outcome.output;
  }
  // The fixture's, whose special token is called as GPT-2's.
  static std::string tokenizer_that_ends() {
    std::string tokenizer = file_text(fs::absolute(test_environment().data) / "fixtures" / "tokenizers" / "gpt2.json");
    const std::string theirs = "<|eot|>";
    for (std::size_t at = 0; (at = tokenizer.find(theirs, at)) != std::string::npos;) tokenizer.replace(at, theirs.size(), "<|endoftext|>");
    return tokenizer;
  }
  static void expect_part(const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }

  TemporaryFolder folder_;
  fs::path program_ = fs::absolute(test_environment().program);
};

TEST_F(AfterARun, TheEndOfARunSaysTheNextCommandAndAProfileNamesItsFiles) {
  const std::string text = done("train text.toml --device cpu --run 'a run' --profile 3:2");
  expect_part(text, "\nnext: tilewave generate 'a run' --prompt 'TEXT'\n");
  expect_part(text, "profile.jsonl and, for Perfetto or chrome://tracing, in");
  const nlohmann::json trace = nlohmann::json::parse(file_text(folder() / "a run" / "trace.json"));
  EXPECT_GT(trace.at("traceEvents").size(), 20U);
  expect_part(done("train pairs.toml --device cpu --run pairs"), "\nnext: tilewave translate pairs < FILE\n");
  expect_part(done("train pairs.toml --device cpu --run made_up --set data.kind=synthetic --set data.source='' --set data.target=''"),
              "\nnext: tilewave report made_up\n");
}

// plot.py runs beside the steps: the table grows with them, and what is there at the end is whole.
TEST_F(AfterARun, TheTableOfLossesIsRenewedAsTheRunGoes) {
  if (shell("python3 --version", folder()).status != 0) GTEST_SKIP() << "there is no python3: loss.csv was NOT looked at";
  const std::string line = quoted(program_.string()) +
                           " train text.toml --device cpu --run run --set run.steps=100000 --set run.validate_every=20 >log 2>&1 & "
                           "for i in $(seq 600); do [ -s run/loss.csv ] && break; sleep 0.1; done; "
                           "[ -e run/summary.json ] || echo under way; head -1 run/loss.csv; kill -TERM $!; wait $!";
  expect_part(shell(line, folder()).output, "under way\nstep,loss,validation_loss,learning_rate,gradient_norm\n");
}

TEST_F(AfterARun, AReportIsOneFile) {
  done("train text.toml --device cpu --run run --profile 3:2");
  expect_part(done("report run --device cpu --prompt 'line 7' --tokens 20"), "report written to run/report.html\n");
  const std::string page = file_text(folder() / "run" / "report.html");
  for (const char* part : {"<h1>Run run</h1>", "validation loss", "<b>line 7</b>", "the mean of 2 steps profiled",
                           "decoder.<wbr>*.<wbr>ffn.<wbr>up", "data.<wbr>tokenizer", "a perplexity of"}) {
    expect_part(page, part);
  }
  expect_part(done("report run --device cpu --tokens 0 --out page.html"), "page.html");
  expect_part(file_text(folder() / "page.html"), "No sample was asked for");
  done("train pairs.toml --device cpu --run pairs");
  done("report pairs --device cpu");
  const std::string pairs = file_text(folder() / "pairs" / "report.html");
  expect_part(pairs, "<b>the number ");
  expect_part(pairs, "No step of the run was profiled");
  expect_refusal("report nowhere", "this is no run folder");
  expect_refusal("report run --out nowhere/page.html", "--out nowhere/page.html");
  // A run that is started over leaves no report of the former one.
  done("train text.toml --device cpu --run run --force");
  EXPECT_FALSE(fs::exists(folder() / "run" / "report.html"));
}

TEST_F(AfterARun, AnEvaluationIsTheValidationOfTheLastStep) {
  done("train text.toml --device cpu --run run");
  const nlohmann::json summary = nlohmann::json::parse(file_text(folder() / "run" / "summary.json"));
  const nlohmann::json found = nlohmann::json::parse(done("evaluate run --device cpu --json"));
  EXPECT_EQ(found.at("loss"), summary.at("validation_loss"));
  EXPECT_EQ(found.at("target_tokens"), summary.at("validation_tokens"));
  EXPECT_NEAR(found.at("perplexity").get<double>(), std::exp(found.at("loss").get<double>()), 1e-9);
  EXPECT_EQ(found.at("step"), 6);
  const nlohmann::json other = nlohmann::json::parse(done("evaluate run --device cpu --data text.toml --json"));
  EXPECT_NE(other.at("loss"), found.at("loss"));
  expect_part(done("evaluate run --device cpu"), "perplexity ");
  fs::remove(folder() / "text.txt");
  EXPECT_EQ(nlohmann::json::parse(done("evaluate run --device cpu --data text.toml --json")).at("loss"), other.at("loss"))
      << "other data needs none of the run's files";
  expect_refusal("evaluate run --device cpu", "data.source");
  expect_refusal("evaluate run --device cpu --data text.toml --target text.toml", "goes without --target");
  expect_refusal("evaluate run --device cpu --target text.toml", "goes with --data FILE");
  expect_refusal("evaluate run --device cpu --data absent.txt", "absent.txt");
  expect_refusal("evaluate nowhere --device cpu", "this is no run folder");
}

TEST_F(AfterARun, PairsAreTranslatedAndScored) {
  done("train pairs.toml --device cpu --run pairs");
  const std::string whole = done("evaluate pairs --device cpu --data source.txt --target target.txt --json");
  const nlohmann::json found = nlohmann::json::parse(whole.substr(whole.find('{')));
  EXPECT_EQ(found.at("pairs"), 60);
  EXPECT_EQ(found.at("translations"), 60);
  const bool scored = found.contains("bleu");
  EXPECT_NE(scored, whole.find("python3 has no sacrebleu") != std::string::npos) << whole;
  if (scored) {
    EXPECT_NE(found.at("chrf_signature").get<std::string>().find("version"), std::string::npos) << found;
  }
  expect_refusal("evaluate pairs --device cpu --data source.txt", "needs --target FILE");
}

// A module of that name in its place: what goes to sacrebleu, and what comes of its answer.
TEST_F(AfterARun, ScoresAreSacrebleus) {
  write_text(folder() / "stub" / "sacrebleu" / "__init__.py", "");
  write_text(folder() / "stub" / "sacrebleu" / "metrics.py", R"(
class Score:
    def __init__(self, score):
        self.score = score
class BLEU:
    def corpus_score(self, hypotheses, references):
        assert len(references) == 1 and len(references[0]) == len(hypotheses) == 60, (hypotheses, references)
        assert references[0][7] == "die Zahl 7", references
        return Score(12.5)
    def get_signature(self):
        return "one|version:0"
class CHRF(BLEU):
    def corpus_score(self, hypotheses, references):
        return Score(50.25)
)");
  done("train pairs.toml --device cpu --run pairs");
  const Outcome outcome = shell(
      "PYTHONPATH=stub " + quoted(program_.string()) + " evaluate pairs --device cpu --data source.txt --target target.txt", folder());
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  expect_part(outcome.output, "BLEU 12.50, chrF 50.25 of 60 translations (one|version:0; one|version:0)\n");
}

// Import, fine-tune on a text with the model's own tokenizer, sample, export, import again: by documents alone.
TEST_F(AfterARun, AModelIsTunedOnTextWithItsOwnTokenizer) {
  const std::string tokenizer = tokenizer_that_ends();
  write_text(folder() / "theirs" / "tokenizer.json", tokenizer);
  // A model of that vocabulary, which a run makes.
  done("train text.toml --device cpu --run first --set data.tokenizer=theirs --set model.vocabulary=500 --set run.steps=2");
  expect_part(done("export first theirs2"), "(config.json, model.safetensors, tokenizer.json, tokenizer_config.json)");
  const nlohmann::json config = nlohmann::json::parse(file_text(folder() / "theirs2" / "config.json"));
  EXPECT_TRUE(config.at("eos_token_id").is_number_integer()) << config;
  EXPECT_EQ(nlohmann::json::parse(file_text(folder() / "theirs2" / "tokenizer_config.json")).at("eos_token"), "<|endoftext|>");
  const std::string imported = done("import theirs2 --recipe tuned.toml");
  expect_part(imported, "text becomes ids by its tokenizer.json");
  expect_part(imported, "next: tilewave train tuned.toml --weights theirs2 --set data.source=FILE.txt");
  done(
      "train tuned.toml --device cpu --weights theirs2 --set data.source=text.txt --run tuned --set run.steps=3 --set "
      "batch.target_tokens=64");
  const nlohmann::json origin = nlohmann::json::parse(file_text(folder() / "tuned" / "weights.json"));
  EXPECT_EQ(origin.at("files").at(0).at("sha256").get<std::string>() + "  theirs2/model.safetensors\n",
            shell("sha256sum theirs2/model.safetensors", folder()).output);
  for (const char* gone : {"theirs", "theirs2", "first"}) fs::remove_all(folder() / gone);
  done("train tuned --device cpu --resume --set run.steps=5");
  expect_part(done("generate tuned --device cpu --prompt 'line' --tokens 12 --temperature 0"), "line");
  done("export tuned out");
  EXPECT_EQ(file_text(folder() / "out" / "tokenizer.json"), tokenizer);
  expect_refusal("export tuned out", "already");
  expect_part(done("inspect tuned/tokenizer.json --json"), "\"end\": \"<|endoftext|>\"");
}

TEST_F(AfterARun, GenerateStopsWhereTheTextEnds) {
  write_text(folder() / "ends.json", tokenizer_that_ends());
  // Ends within every line, so that the model learns to end soon.
  std::string text;
  for (int i = 0; i < 400; ++i) text += "ab<|endoftext|>";
  write_text(folder() / "ends.txt", text);
  done(
      "train text.toml --device cpu --run run --set data.source=ends.txt --set data.tokenizer=ends.json"
      " --set model.vocabulary=500 --set run.steps=60 --set optimizer.learning_rate=0.02 --set schedule.warmup_steps=5");
  const std::string words = "generate run --device cpu --prompt ab --temperature 0 --tokens 30";
  EXPECT_EQ(done(words), "ab\n");
  EXPECT_GT(done(words + " --end none").size(), 20U);
  expect_refusal(words + " --end '<|eot|>'", "--end <|eot|> is no token of the tokenizer; name one of its tokens, such as <|endoftext|>");
}

}  // namespace
}  // namespace tilewave
