// .ci/prose, which counts how long a document's sentences are: what it leaves out, what it counts, and that it can fail.
#include <filesystem>
#include <gtest/gtest.h>
#include <string>

#include "tests/shell.h"
#include "tests/test_environment.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;

std::string words(int count) {
  std::string text = "A";
  for (int i = 1; i < count; ++i) text += " word";
  return text + ".";
}

class Prose : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(script_)) GTEST_SKIP() << ".ci/prose is not beside --data";
    if (shell("python3 --version", folder_.path()).status != 0) GTEST_SKIP() << "there is no python3";
  }

  Outcome count(const std::string& page, const std::string& text) {
    write_text(folder_.path() / page, text);
    return shell("python3 " + quoted(script_.string()) + " .", folder_.path());
  }

  TemporaryFolder folder_;
  fs::path script_ = fs::absolute(test_environment().data).lexically_normal() / ".." / ".ci" / "prose";
};

TEST_F(Prose, AMeanAboveTwentyFiveWordsFailsAndIsNamed) {
  EXPECT_EQ(count("README.md", words(25)).status, 0);
  EXPECT_EQ(count("docs/use/a.md", words(20) + " " + words(30)).status, 0);
  const Outcome outcome = count("docs/understand/b.md", words(24) + " " + words(28));
  EXPECT_EQ(outcome.status, 1) << outcome.output;
  EXPECT_NE(outcome.output.find("docs/understand/b.md: 26.0 words a sentence"), std::string::npos) << outcome.output;
  EXPECT_EQ(outcome.output.find("docs/use/a.md: "), std::string::npos) << outcome.output;
}

TEST_F(Prose, ResultsAndTheLabAreCountedAndNotHeld) {
  const Outcome outcome = count("docs/results/a.md", words(60));
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("docs/results/a.md "), std::string::npos) << outcome.output;
}

TEST_F(Prose, TablesBlocksHeadingsAndCommentsAreNoSentences) {
  const std::string noise = "# " + words(90) + "\n\n| " + words(90) + " |\n|---|\n\n```\n" + words(90) + "\n```\n\n    " + words(90) +
                            "\n\n<!-- " + words(90) + " -->\n";
  const Outcome outcome = count("README.md", noise + "\nOne `of many words 1 2 3`\nand two. Another.\n\n- An item\n- and\n  a third\n");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("README.md                                            4    2.5     0.00               0"),
            std::string::npos)
      << outcome.output;
}

TEST_F(Prose, NumbersThatNameSomethingAreWords) {
  const Outcome outcome = count("README.md",
                                "Commit 41edf28 and CUDA 13.0 of figure 8 on an H200 give exit code 2. "
                                "It took 3 us and 4,096 rows. It is +1.5 % faster. batch.sequence is none.\n");
  EXPECT_NE(outcome.output.find("README.md                                            4    7.2     0.75               1"),
            std::string::npos)
      << outcome.output;
}

TEST_F(Prose, NothingToReadIsAnError) { EXPECT_EQ(shell("python3 " + quoted(script_.string()) + " .", folder_.path()).status, 2); }

}  // namespace
}  // namespace tilewave
