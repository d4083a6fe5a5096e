// The programs of examples/, as the build tree has them, run and print what they promise.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <string>

#include "tests/shell.h"
#include "tests/test_environment.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;

class Examples : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(programs_)) GTEST_SKIP() << "the examples are not beside --program; TILEWAVE_EXAMPLES builds them";
  }

  Outcome run(const std::string& words) const {
    return shell(quoted((programs_ / words.substr(0, words.find(' '))).string()) + words.substr(words.find(' ')), "/");
  }
  std::string recipe(const char* name) const {
    return quoted((fs::absolute(test_environment().data).lexically_normal() / ".." / "recipes" / name).string());
  }

  fs::path programs_ = fs::absolute(test_environment().program).lexically_normal().parent_path() / "examples";
};

double number_behind(const std::string& text, const std::string& words) {
  const std::size_t at = text.rfind(words);
  return at == std::string::npos ? 0.0 : std::strtod(text.c_str() + at + words.size(), nullptr);
}

TEST_F(Examples, APlanSaysWhatTheCommandSays) {
  const Outcome example = run("plan " + recipe("transformer_big.toml") + " h100-sxm");
  ASSERT_EQ(example.status, 0) << example.output;
  EXPECT_NE(example.output.find("decoder.*.ffn.up"), std::string::npos) << example.output;
  const Outcome command = shell(
      quoted(fs::absolute(test_environment().program).string()) + " plan " + recipe("transformer_big.toml") + " --for h100-sxm --json",
      "/");
  ASSERT_EQ(command.status, 0) << command.output;
  const double step_ms = number_behind(example.output, "a step is predicted to take ");
  const double command_us = number_behind(command.output, "\"predicted_us\": ");
  EXPECT_GT(step_ms, 0.0);
  EXPECT_NEAR(step_ms, 1e-3 * command_us, 0.006);
}

TEST_F(Examples, APlanAnswersAMistakeWithASentence) {
  EXPECT_EQ(run("plan ").status, 2);
  const Outcome outcome = run("plan " + recipe("tiny.toml") + " h1000");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_TRUE(outcome.output.starts_with("plan: ")) << outcome.output;
  EXPECT_NE(outcome.output.find("h1000"), std::string::npos) << outcome.output;
}

TEST_F(Examples, TheTrainingLoopLearns) {
  const Outcome outcome = run("training_loop 100");
  ASSERT_EQ(outcome.status, 0) << outcome.output;
  const std::size_t first = outcome.output.find("validation loss ");
  ASSERT_NE(first, std::string::npos) << outcome.output;
  const double before = std::strtod(outcome.output.c_str() + first + 16, nullptr),
               after = number_behind(outcome.output, "validation loss ");
  EXPECT_GT(before, 3.0) << outcome.output;
  EXPECT_LT(after, 0.8 * before) << outcome.output;
}

TEST_F(Examples, AnOperationOfOnesOwnIsChecked) {
  const Outcome outcome = run("own_operation ");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_TRUE(outcome.output.ends_with("\nthe gated linear unit's gradients are right\n")) << outcome.output;
}

TEST_F(Examples, AreShort) {
  for (const char* name : {"plan.cpp", "training_loop.cpp", "own_operation.cpp", "wandb_log.py", "trackio_log.py"}) {
    const std::string text = file_text(fs::absolute(test_environment().data).lexically_normal() / ".." / "examples" / name);
    EXPECT_LE(std::count(text.begin(), text.end(), '\n'), std::string_view(name).ends_with(".py") ? 11 : 100) << name;
  }
}

// What a board is told: a module of its name that writes it down, and the module itself where it is installed.
TEST(LoggingExamples, TellABoardEveryStep) {
  const fs::path examples = fs::absolute(test_environment().data).lexically_normal() / ".." / "examples";
  if (!fs::exists(examples)) GTEST_SKIP() << "examples/ is not beside --data";
  if (shell("python3 --version", "/").status != 0) GTEST_SKIP() << "there is no python3: the examples in Python were NOT run";
  for (const std::string board : {"wandb", "trackio"}) {
    const TemporaryFolder folder;
    write_text(folder.path() / "a_run" / "metrics.jsonl",
               "{\"step\": 1, \"loss\": 4.5}\n{\"step\": 2, \"loss\": 4.0, \"validation_loss\": 4.25}\n");
    write_text(folder.path() / "stub" / (board + ".py"), R"(
def init(project, name):
    print("init", project, name)
def log(row, step):
    print("log", step, sorted(row.items()))
def finish():
    print("finish")
)");
    const std::string script = quoted((examples / (board + "_log.py")).string()) + " a_run";
    const Outcome told = shell("PYTHONPATH=stub python3 -B " + script, folder.path());
    EXPECT_EQ(told.output, "init tilewave a_run\nlog 1 [('loss', 4.5)]\nlog 2 [('loss', 4.0), ('validation_loss', 4.25)]\nfinish\n");
  }
}

class InstalledBoards : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(LoggingExamples, InstalledBoards, testing::Values("wandb", "trackio"));
TEST_P(InstalledBoards, TakeARun) {
  const std::string board = GetParam();
  const char* named = std::getenv("TILEWAVE_PYTHON");
  const std::string python = quoted(named != nullptr ? named : "python3");
  if (shell(python + " -c 'import " + board + "'", "/").status != 0)
    GTEST_SKIP() << python << " has no " << board << ", so examples/" << board << "_log.py was NOT run with it (TILEWAVE_PYTHON names one)";
  const TemporaryFolder folder;
  write_text(folder.path() / "a_run" / "metrics.jsonl", "{\"step\": 1, \"loss\": 4.5}\n{\"step\": 2, \"loss\": 4.0}\n");
  const fs::path script = fs::absolute(test_environment().data).lexically_normal() / ".." / "examples" / (board + "_log.py");
  const Outcome outcome =
      shell("HOME=$PWD TRACKIO_DIR=$PWD WANDB_MODE=offline WANDB_SILENT=true " + python + " -B " + quoted(script.string()) + " a_run",
            folder.path());
  EXPECT_EQ(outcome.status, 0) << outcome.output;
}

}  // namespace
}  // namespace tilewave
