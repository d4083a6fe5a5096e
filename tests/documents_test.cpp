// README.md and docs/*.md keep their word: every command in them that starts with ./tilewave is run, in order, in a folder that
// holds the recipes and the documents, by a stand-in for the script that shortens what would take long (kStandIn is the rule).
#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "tests/shell.h"
#include "tests/test_environment.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;

constexpr const char* kStandIn = R"(#!/bin/sh
case "$1" in --preset) shift 2 ;; esac
case "$1 $*" in
  'test '*) exit 0 ;;                                                   # these very tests
  *'--device cuda'*) exec PROGRAM "$@" --dry-run ;;                     # may lack its GPU
  'train '*) exec PROGRAM "$@" --set run.steps=2 ;;                     # two steps stand for all
  'ablate '*) exec PROGRAM "$@" --device cpu --steps 1 --rounds 1 ;;    # one round too
  *) exec PROGRAM "$@" ;;
esac
)";

fs::path root() { return fs::absolute(test_environment().data).lexically_normal() / ".."; }

struct Command {
  std::string document;
  std::string line;
};

// The lines of ```bash and ```console blocks that start with ./tilewave, a prompt before it left out, continued lines joined.
std::vector<Command> commands_of(const std::string& document, const std::string& text) {
  std::vector<Command> commands;
  std::istringstream lines(text);
  std::string line;
  bool inside = false;
  while (std::getline(lines, line)) {
    if (line.starts_with("```")) {
      inside = !inside && (line == "```bash" || line == "```console");
      continue;
    }
    if (!inside) continue;
    if (line.starts_with("$ ")) line.erase(0, 2);
    for (std::string next; line.ends_with('\\') && std::getline(lines, next);) line = line.substr(0, line.size() - 1) + next;
    if (line.starts_with("./tilewave")) commands.push_back({.document = document, .line = line});
  }
  return commands;
}

std::vector<fs::path> documents() {
  std::vector<fs::path> files = {root() / "README.md"};
  for (const fs::directory_entry& entry : fs::directory_iterator(root() / "docs")) {
    if (entry.path().extension() == ".md") files.push_back(entry.path());
  }
  std::sort(files.begin() + 1, files.end());
  return files;
}

class Documents : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(root() / "README.md")) GTEST_SKIP() << "the documents are not beside --data";
  }
};

TEST_F(Documents, CommandsRun) {
  const TemporaryFolder folder;
  std::string stand_in = kStandIn;
  const std::string program = quoted(fs::absolute(test_environment().program).string());
  for (std::size_t at = 0; (at = stand_in.find("PROGRAM", at)) != std::string::npos; at += program.size()) stand_in.replace(at, 7, program);
  write_program(folder.path() / "tilewave", stand_in);
  for (const char* name : {"recipes", "docs", "README.md"}) fs::create_symlink(fs::canonical(root() / name), folder.path() / name);
  std::size_t count = 0;
  for (const fs::path& document : documents()) {
    for (const Command& command : commands_of(document.filename().string(), file_text(document))) {
      ++count;
      const Outcome outcome = shell(command.line, folder.path());
      EXPECT_EQ(outcome.status, 0) << command.document << ": " << command.line << "\n" << outcome.output;
    }
  }
  EXPECT_GE(count, 2U);
}

TEST_F(Documents, CommandsAreFound) {
  const std::vector<Command> commands = commands_of(
      "x.md",
      "```bash\n./tilewave a \\\n  b\n```\ntext\n./tilewave no\n```toml\n./tilewave no\n```\n```console\n$ ./tilewave c\nno\n```\n");
  ASSERT_EQ(commands.size(), 2U);
  EXPECT_EQ(commands[0].line, "./tilewave a   b");
  EXPECT_EQ(commands[1].line, "./tilewave c");
}

TEST_F(Documents, NamedFilesExist) {
  const std::regex name(R"((recipes|docs|tests|kernels|framework|models|app)/[A-Za-z0-9_/]+\.(toml|md|h|cpp|py|txt)\b)");
  std::size_t count = 0;
  for (const fs::path& document : documents()) {
    const std::string text = file_text(document);
    for (std::sregex_iterator match(text.begin(), text.end(), name), end; match != end; ++match) {
      ++count;
      EXPECT_TRUE(fs::exists(root() / match->str())) << document.filename() << " names " << match->str();
    }
  }
  EXPECT_GE(count, 1U);
}

}  // namespace
}  // namespace tilewave
