// tilewave translate and tilewave generate on runs of a few steps: what they print, and what they refuse before they print.
#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>
#include <string>

#include "tests/app/process.h"
#include "tests/app/terminal.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;

class DecodeCommands : public testing::Test {
 protected:
  // Both runs serve all tests.
  static void SetUpTestSuite() {
    runs_ = std::make_unique<TemporaryFolder>();
    const fs::path recipes = fs::absolute(test_environment().data).lexically_normal() / ".." / "recipes";
    if (!fs::exists(test_environment().program) || !fs::exists(recipes)) return;
    std::string text;
    for (int i = 0; i < 400; ++i) text += "zwölf Löwen über Köln, ";
    write_text(runs_->path() / "text.txt", text);
    train(recipes / "tiny.toml", {"--run", "translator", "--set", "run.steps=2", "--set", "run.checkpoint_every=1"});
    train(recipes / "tiny.toml", {"--run", "writer",
                                  "--set", "run.steps=2",
                                  "--set", "run.checkpoint_every=1",
                                  "--set", "model.architecture=decoder_only",
                                  "--set", "model.encoder_layers=0",
                                  "--set", "batch.source_tokens=0",
                                  "--set", "data.kind=text",
                                  "--set", "data.source=text.txt",
                                  "--set", "data.tokenizer=bytes",
                                  "--set", "model.vocabulary=260"});
    std::string lines;
    for (int i = 0; i < 400; ++i) lines += "zwölf Löwen\r\nüber Köln, \xE2\x96\x85\r\n";
    write_text(runs_->path() / "lines.txt", "\xEF\xBB\xBF" + lines);
    train(recipes / "tiny.toml", {"--run", "speller", "--set", "run.steps=2", "--set", "model.architecture=decoder_only", "--set",
                                  "model.encoder_layers=0", "--set", "batch.source_tokens=0", "--set", "data.kind=text", "--set",
                                  "data.source=lines.txt", "--set", "data.tokenizer=bpe", "--set", "data.tokenizer_vocabulary=32"});
  }
  static void TearDownTestSuite() { runs_.reset(); }
  static void train(const fs::path& recipe, std::vector<std::string> options) {
    options.insert(options.begin(), {"train", recipe.string()});
    Process process(runs_->path(), options);
    ASSERT_EQ(process.wait(), 0) << process.errors();
  }
  void SetUp() override {
    if (!fs::exists(runs_->path() / "writer")) GTEST_SKIP() << "no runs: the program is not at --program, or recipes/ not beside --data";
  }
  static fs::path folder() { return runs_->path(); }
  static Outcome with_input(const std::string& arguments, const std::string& input) {
    write_text(folder() / "input", input);
    const std::string program = quoted(fs::absolute(test_environment().program).string());
    return shell(program + " " + arguments + " < input 2> errors", folder());
  }
  // With standard output on a terminal: what that was sent.
  static std::string on_a_terminal(const std::vector<std::string>& words) {
    Terminal terminal(80);
    Process process(folder(), words, [&] { ::dup2(terminal.descriptor(), STDOUT_FILENO); });
    EXPECT_EQ(process.wait(), 0) << process.errors();
    return terminal.close();
  }
  static std::string errors() { return file_text(folder() / "errors"); }
  static void expect_said(const std::string& part) { EXPECT_NE(errors().find(part), std::string::npos) << errors(); }
  // Exit code 2, one sentence that holds `part`, and nothing printed.
  static void expect_refusal(const std::string& arguments, const std::string& part) {
    const Outcome outcome = with_input(arguments, "one\n");
    const std::string errors = file_text(folder() / "errors");
    EXPECT_EQ(outcome.status, 2) << arguments;
    EXPECT_EQ(outcome.output, "") << arguments;
    EXPECT_NE(errors.find(part), std::string::npos) << errors;
    EXPECT_EQ(std::count(errors.begin(), errors.end(), '\n'), 1) << errors;
  }

 private:
  static inline std::unique_ptr<TemporaryFolder> runs_;
};

TEST_F(DecodeCommands, TranslateWritesALineForEach) {
  for (const std::string beams : {"1", "3"}) {
    const Outcome three = with_input("translate translator --beams " + beams, "forty-two\n\none hundred\r\n");
    EXPECT_EQ(three.status, 0) << file_text(folder() / "errors");
    EXPECT_EQ(std::count(three.output.begin(), three.output.end(), '\n'), 3) << three.output;
    const Outcome one = with_input("translate translator --beams " + beams, "one hundred");
    EXPECT_EQ(three.output.substr(three.output.find("\n\n") + 2), one.output) << "lines do not meet";
  }
  EXPECT_EQ(with_input("translate translator", "").status, 0);
  const std::string plain = with_input("translate translator", "two\n").output;
  EXPECT_EQ(with_input("translate translator", "\xEF\xBB\xBFtwo\n").output, plain) << "a mark is no text";
}

TEST_F(DecodeCommands, TranslateGoesOnBehindALineThatItCannotTake) {
  const std::string good = with_input("translate translator", "one\ntwo\n").output;
  const std::size_t second = good.find('\n') + 1;
  const std::string with_gaps = good.substr(0, second) + "\n\n" + good.substr(second) + "\n";
  std::string longest;
  for (int i = 0; i < 200; ++i) longest += "one hundred ";
  const Outcome outcome = with_input("translate translator", "one\n\xC3\n" + longest + "\ntwo\n" + longest);
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.output, with_gaps);
  expect_said("2 of 5 lines have more than the 64 tokens that the run was trained on (batch.sequence), the first of them line 3; ");
  expect_said("1 of 5 lines are not UTF-8, the first of them line 2; their translations are empty.");
  const std::string said = errors();
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 2) << said;
  EXPECT_EQ(with_input("translate translator", "one\ntwo\n").output, good);
  EXPECT_EQ(errors(), "") << "nothing is said of lines that are translated";
}

TEST_F(DecodeCommands, TranslateTruncatesLongLinesWhereAsked) {
  std::string first, second;
  for (int i = 0; i < 200; ++i) {
    first += "one hundred ";
    second += i < 100 ? "one hundred " : "seven ";
  }
  const Outcome outcome = with_input("translate translator --truncate", first + "\none\n" + second + "\n");
  EXPECT_EQ(outcome.status, 0);
  const std::size_t end = outcome.output.find('\n');
  EXPECT_GT(end, 0u) << "the beginning is translated";
  EXPECT_EQ(outcome.output,
            outcome.output.substr(0, end + 1) + with_input("translate translator", "one\n").output + outcome.output.substr(0, end + 1));
  with_input("translate translator --truncate", first + "\none\n" + second + "\n");
  expect_said(
      "2 of 3 lines have more than the 64 tokens that the run was trained on (batch.sequence), the first of them line 1; their "
      "first tokens alone are translated.");
}

TEST_F(DecodeCommands, WhatTheTokenizerDoesNotKnowIsCounted) {
  with_input("translate translator", "one\ntwo \xCE\x94 and \xCE\xA9\n");
  expect_said("2 of ");
  expect_said("ids of the lines are unknown to the tokenizer, ");
  expect_said("the first stands for '\xCE\x94' (U+0394) in standard input, line 2.\n");
  with_input("generate speller --tokens 0 --prompt 'K\xC3\xB6ln \x1B'", "");
  expect_said("1 of ");
  expect_said(
      "ids of the prompt is unknown to the tokenizer, which knows no character but those of the text it was trained on; the first "
      "stands for U+001B.\n");
  with_input("generate writer --tokens 0 --prompt '\x1B'", "");
  EXPECT_EQ(errors(), "") << "bytes know everything";
}

// The carriage returns and the mark that training text is freed of are none of a prompt's either; U+2585 was in it and is known.
TEST_F(DecodeCommands, APromptIsPreparedAsTrainingTextIs) {
  const std::string plain = with_input("generate speller --tokens 0 --prompt 'zw\xC3\xB6lf L\xC3\xB6wen\n\xE2\x96\x85'", "").output;
  EXPECT_EQ(plain, "zw\xC3\xB6lf L\xC3\xB6wen\n\xE2\x96\x85\n");
  EXPECT_EQ(errors(), "");
  const std::string marked = "\xEF\xBB\xBFzw\xC3\xB6lf L\xC3\xB6wen\r\n\xE2\x96\x85";
  EXPECT_EQ(with_input("generate speller --tokens 0 --prompt '" + marked + "'", "").output, plain);
  EXPECT_EQ(errors(), "");
  EXPECT_EQ(with_input("generate speller --tokens 6 --temperature 0 --prompt '" + marked + "'", "").output,
            with_input("generate speller --tokens 6 --temperature 0 --prompt 'zw\xC3\xB6lf L\xC3\xB6wen\n\xE2\x96\x85'", "").output);
}

TEST_F(DecodeCommands, ATerminalIsGivenNoOrders) {
  const std::string prompt = "a\x1B[31m\tb\xFF\xC3(\n\xC3\xB6";
  const std::vector<std::string> words = {"generate", "writer", "--tokens", "0", "--prompt", prompt};
  EXPECT_EQ(on_a_terminal(words), "a\\x1b[31m\tb\\xff\\xc3(\r\n\xC3\xB6\r\n") << "a terminal ends lines with CR LF";
  EXPECT_EQ(with_input("generate writer --tokens 0 --prompt " + quoted(prompt), "").output, prompt + "\n") << "a file gets every byte";
  // Drawn bytes come one by one; what they make of each other must not slip through.
  const std::string drawn = on_a_terminal({"generate", "writer", "--tokens", "200", "--temperature", "50", "--prompt", "a"});
  for (const char byte : drawn) EXPECT_TRUE(static_cast<unsigned char>(byte) >= 0x20 || byte == '\n' || byte == '\r' || byte == '\t');
  EXPECT_NE(drawn.find("\\x"), std::string::npos) << drawn;
}

TEST_F(DecodeCommands, GenerateContinuesThePrompt) {
  const Outcome none = with_input("generate writer --prompt 'zwölf ' --tokens 0", "");
  EXPECT_EQ(none.status, 0) << file_text(folder() / "errors");
  EXPECT_EQ(none.output, "zwölf \n");
  const Outcome drawn = with_input("generate writer --prompt 'zwölf ' --tokens 40 --temperature 2", "");
  EXPECT_EQ(drawn.status, 0) << file_text(folder() / "errors");
  EXPECT_TRUE(drawn.output.starts_with("zwölf ")) << drawn.output;
  EXPECT_GT(drawn.output.size(), none.output.size());
  EXPECT_LE(drawn.output.size(), none.output.size() + 40);
  EXPECT_EQ(with_input("generate writer --prompt 'zwölf ' --tokens 40 --temperature 2", "").output, drawn.output);
  EXPECT_NE(with_input("generate writer --prompt 'zwölf ' --tokens 40 --temperature 2 --seed 2", "").output, drawn.output);
}

// A run that was made on a GPU, in 16 bits or by a library, is decoded on a CPU.
TEST_F(DecodeCommands, ARunOfAnotherDeviceDecodesHere) {
  const fs::path other = folder() / "other";
  fs::remove_all(other);
  fs::copy(folder() / "writer", other, fs::copy_options::recursive);
  std::string recipe = file_text(other / "recipe.toml");
  for (const auto& [from, to] : {std::pair{"\"fp32\"", "\"bf16\""}, std::pair{"\"tilewave\"", "\"cublaslt\""}}) {
    ASSERT_NE(recipe.find(from), std::string::npos) << recipe;
    recipe.replace(recipe.find(from), std::string(from).size(), to);
  }
  write_text(other / "recipe.toml", recipe);
  const std::string options = " --device cpu --prompt zw --tokens 20 --seed 3";
  const Outcome here = with_input("generate other" + options, "");
  EXPECT_EQ(here.status, 0) << file_text(folder() / "errors");
  EXPECT_EQ(here.output, with_input("generate writer" + options, "").output);
}

// As train does where it goes on from one.
TEST_F(DecodeCommands, AnOlderCheckpointIsSaid) {
  const auto checkpoint = [](const fs::path& run, int step) { return run / "checkpoints" / ("step-0000000" + std::to_string(step)); };
  for (const auto& [command, run] : {std::pair{"translate", "translator"}, std::pair{"generate", "writer"}}) {
    const fs::path damaged = folder() / "damaged", older = folder() / "older";
    for (const fs::path& copy : {damaged, older}) {
      fs::remove_all(copy);
      fs::copy(folder() / run, copy, fs::copy_options::recursive);
      ASSERT_TRUE(fs::exists(checkpoint(copy, 1)) && fs::exists(checkpoint(copy, 2)));
    }
    fs::remove_all(checkpoint(older, 2));
    write_text(checkpoint(damaged, 2) / "weights.safetensors", file_text(checkpoint(damaged, 2) / "weights.safetensors") + "x");
    const std::string words = std::string(" --device cpu") + (run == std::string("writer") ? " --prompt zw --tokens 20" : "");
    const Outcome outcome = with_input(command + std::string(" damaged") + words, "one\n");
    const std::string errors = file_text(folder() / "errors");
    EXPECT_EQ(outcome.status, 0) << errors;
    EXPECT_NE(errors.find("tilewave: skipped a checkpoint: "), std::string::npos) << errors;
    EXPECT_NE(errors.find("step-00000002: weights.safetensors has "), std::string::npos) << errors;
    EXPECT_NE(errors.find("tilewave: these are the weights after step 1."), std::string::npos) << errors;
    EXPECT_EQ(outcome.output, with_input(command + std::string(" older") + words, "one\n").output);
    EXPECT_EQ(file_text(folder() / "errors"), "") << "what is not there is not newer";
  }
}

TEST_F(DecodeCommands, AClosedStandardInputIsAtItsEnd) {
  const std::string program = quoted(fs::absolute(test_environment().program).string());
  const Outcome outcome = shell(program + " translate translator <&-", folder());
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.output, "");
}

TEST_F(DecodeCommands, RefuseBeforeTheyPrint) {
  expect_refusal("generate translator --prompt a", "cannot continue a text; use translate");
  expect_refusal("generate writer --prompt a --temperature nan", "--temperature: nan is no number");
  expect_refusal("generate writer --prompt a --temperature -1", "the temperature is -1");
  expect_refusal("generate nowhere --prompt a", "nowhere");
  expect_refusal("translate writer", "cannot translate; use generate");
  expect_refusal("translate translator --length-penalty nan", "--length-penalty: nan is no number");
  expect_refusal("translate nowhere", "nowhere");
}

}  // namespace
}  // namespace tilewave
