// The man page: whole, and well-formed roff.
#include <filesystem>
#include <gtest/gtest.h>
#include <regex>
#include <sstream>
#include <string>

#include "app/text/man_page.h"
#include "tests/app/process.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;

class ManPage : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(test_environment().program)) GTEST_SKIP() << "the program is not at --program";
    Process process(folder_.path(), {"man"});
    ASSERT_EQ(process.wait(), 0);
    page_ = process.output();
    write_text(folder_.path() / "tilewave.1", page_);
  }

  TemporaryFolder folder_;
  std::string page_;
};

std::string in_roff(std::string text) { return std::regex_replace(text, std::regex("-"), "\\-"); }

TEST_F(ManPage, HasEveryCommandAndOption) {
  std::size_t options = 0;
  for (const CommandPath& path : every_command()) {
    std::string called = "tilewave";
    for (const std::string& word : path) called += " " + word;
    std::size_t section = path.empty() ? page_.find(".SH OPTIONS\n") : page_.find(".SS \"" + in_roff(called) + "\"\n");
    ASSERT_NE(section, std::string::npos) << called;
    const std::size_t end = std::min(page_.find("\n.SS ", section), page_.find("\n.SH ", section));
    const std::string text = page_.substr(section, end - section);
    for (const auto& [option, takes_value] : help_of(path).options) {
      if (option == "--help") continue;
      ++options;
      EXPECT_NE(text.find("\\fB" + in_roff(option) + "\\fR"), std::string::npos) << called << ' ' << option;
    }
    for (const std::string& positional : help_of(path).positionals) {
      EXPECT_NE(text.find("\\fB" + in_roff(positional) + "\\fR"), std::string::npos) << called << ' ' << positional;
    }
  }
  EXPECT_GE(options, 80U);
}

// What roff would take for an order of its own.
TEST_F(ManPage, IsMadeOfKnownMacrosAndEscapes) {
  const std::regex macro(R"(\.(TH|SH|SS|TP|PP|nf|fi)( .*)?)");
  const std::regex escape(R"(\\([-e&]|f[BIR]))");
  std::istringstream lines(page_);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_TRUE((!line.starts_with('.') && !line.starts_with('\'')) || std::regex_match(line, macro)) << line;
    EXPECT_EQ(std::regex_replace(line, escape, "").find('\\'), std::string::npos) << line;
    EXPECT_LT(line.size(), 400U) << line;
  }
  EXPECT_TRUE(page_.starts_with(".TH TILEWAVE 1 "));
  for (const char* section : {"NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "COMMANDS", "EXIT STATUS", "FILES", "EXAMPLES"}) {
    EXPECT_NE(page_.find(std::string("\n.SH ") + section + "\n"), std::string::npos) << section;
  }
}

TEST_F(ManPage, KeepsDotsQuotesAndBackslashesOfTexts) {
  const CommandNode program{.path = "tilewave",
                            .name = "tilewave",
                            .description = "tilewave: x",
                            .options = {{.name = "--a", .letter = {}, .description = ".b \\c", .operand = {}, .words = {}}},
                            .positionals = {},
                            .commands = {}};
  EXPECT_NE(man_page(program, "1").find("\n\\&.b \\ec.\n"), std::string::npos) << man_page(program, "1");
}

TEST_F(ManPage, PassesMandoc) {
  if (shell("command -v mandoc", "/").status != 0) GTEST_SKIP() << "there is no mandoc";
  const Outcome lint = shell("mandoc -T lint -W warning tilewave.1", folder_.path());
  std::istringstream lines(lint.output);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_NE(line.find("missing date"), std::string::npos) << line;  // a page of the program has no date of its own
  }
}

TEST_F(ManPage, IsSetByGroff) {
  if (shell("command -v groff && groff -man -T utf8 /dev/null", "/").status != 0) GTEST_SKIP() << "there is no groff with its macros";
  const Outcome outcome = shell("groff -ww -man -T utf8 -P -cbou tilewave.1 >page 2>warnings; cat warnings", folder_.path());
  EXPECT_EQ(outcome.output, "");
  EXPECT_NE(file_text(folder_.path() / "page").find("tilewave bench gemm"), std::string::npos);
}

}  // namespace
}  // namespace tilewave
