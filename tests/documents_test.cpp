// README.md, CONTRIBUTING.md and what lies under docs/, results apart, keep their word: every command in their blocks that calls ./tilewave
// is run, in order, in a folder that holds the recipes and the documents, by a stand-in for the script that shortens what would take long
// (kStandIn is the rule). Of commands within sentences, docs/results' too, the command and its options exist; what README shows a run print
// is what it prints.
#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/repository_root.h"
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

struct Command {
  std::string document;
  std::string line;
};

// The lines of ```bash and ```console blocks that start with ./tilewave, or hand it their output, a prompt before it left out, continued
// lines joined.
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
    if (line.starts_with("./tilewave") || line.find("| ./tilewave") != std::string::npos)
      commands.push_back({.document = document, .line = line});
  }
  return commands;
}

std::vector<fs::path> documents() {
  std::vector<fs::path> files = {root() / "README.md", root() / "CONTRIBUTING.md", root() / "CHANGELOG.md"};
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root() / "docs")) {
    const bool result = entry.path().generic_string().find("/docs/results/") != std::string::npos;
    if (entry.path().extension() == ".md" && !result) files.push_back(entry.path());
  }
  std::sort(files.begin() + 3, files.end());
  return files;
}

std::vector<fs::path> documents_and_results() {
  std::vector<fs::path> files = documents();
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root() / "docs" / "results")) {
    if (entry.path().extension() == ".md") files.push_back(entry.path());
  }
  return files;
}

// What stands between backticks within a line or two of a sentence and calls the program; the script's own words are not its.
std::vector<Command> commands_in_sentences(const std::string& document, const std::string& text) {
  static const std::regex call("`(?:\\./)?tilewave ([^`|<>]+)[^`]*`"), own_of_script("(test|packages|--preset)\\b.*");
  std::vector<Command> commands;
  for (std::sregex_iterator match(text.begin(), text.end(), call), end; match != end; ++match) {
    const std::string words = (*match)[1];
    if (!std::regex_match(words.substr(0, words.find('\n')), own_of_script)) commands.push_back({.document = document, .line = words});
  }
  return commands;
}

// Numbers, the unit that suits them, and folders' names left out: what is left says the same in every run.
std::string shape_of(const std::string& line) {
  const std::string folders = std::regex_replace(line, std::regex("runs/\\S+"), "runs/R");
  const std::string numbers = std::regex_replace(folders, std::regex("[0-9]+(,[0-9]{3})*(\\.[0-9]+)?(e[-+]?[0-9]+)?"), "N");
  return std::regex_replace(std::regex_replace(numbers, std::regex("N (ns|us|ms|s)\\b"), "N s"), std::regex("N [MGT]FLOP/s"), "N FLOP/s");
}

// The lines that do not belong to a sample translation.
std::vector<std::string> shapes_of(const std::string& text) {
  std::vector<std::string> shapes;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && !line.starts_with(' ')) shapes.push_back(shape_of(line));
  }
  return shapes;
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

  const std::vector<Command> called =
      commands_in_sentences("x.md", "`tilewave a --b` and `./tilewave c\nd`, `./tilewave test`, `tilewave`, `tilewave e --f > g`");
  ASSERT_EQ(called.size(), 3U);
  EXPECT_EQ(called[0].line, "a --b");
  EXPECT_EQ(called[1].line, "c\nd");
  EXPECT_EQ(called[2].line, "e --f ");
}

TEST_F(Documents, CommandsInSentencesExist) {
  std::map<std::string, Outcome> helps;
  const auto help_of = [&](const std::string& command) -> const Outcome& {
    const auto [at, fresh] = helps.try_emplace(command);
    if (fresh) at->second = shell(quoted(fs::absolute(test_environment().program).string()) + " " + command + " --help", "/");
    return at->second;
  };
  std::size_t count = 0;
  for (const fs::path& document : documents_and_results()) {
    for (const Command& called : commands_in_sentences(document.filename().string(), file_text(document))) {
      ++count;
      std::istringstream words(called.line);
      std::string command, word;
      words >> command;
      if (command == "--help" || command == "--version") continue;
      if (command == "bench" && words >> word) command += " " + word;
      const Outcome& help = help_of(command);
      EXPECT_EQ(help.status, 0) << called.document << ": " << called.line << "\n" << help.output;
      EXPECT_NE(help.output.find("Usage: tilewave " + command + " "), std::string::npos) << called.document << ": " << called.line;
      while (words >> word) {
        if (!word.starts_with("--")) continue;
        const std::regex option("\\s" + word.substr(0, word.find('=')) + "\\s");
        EXPECT_TRUE(std::regex_search(help.output, option)) << called.document << ": " << called.line << ": " << word;
      }
    }
  }
  EXPECT_GE(count, 10U);
}

TEST_F(Documents, ReadmeShowsWhatARunPrints) {
  const std::string readme = file_text(root() / "README.md");
  const std::size_t block = readme.find("```\nexact matches ");
  ASSERT_NE(block, std::string::npos);
  const std::string shown = readme.substr(block + 4, readme.find("```", block + 4) - block - 4);
  const TemporaryFolder folder;
  const std::string train = quoted(fs::absolute(test_environment().program).string()) + " train " +
                            quoted((root() / "recipes" / "toy_translation.toml").string());
  const Outcome run = shell(train + " --device cpu --set run.steps=2 2>/dev/null", folder.path());
  ASSERT_EQ(run.status, 0) << run.output;
  EXPECT_EQ(shapes_of(shown), shapes_of(run.output));
}

TEST_F(Documents, ReadmeIsAPageWithAPicture) {
  const std::string readme = file_text(root() / "README.md");
  EXPECT_LE(std::ranges::count(readme, '\n'), 120);
  std::smatch picture;
  ASSERT_TRUE(std::regex_search(readme, picture, std::regex(R"(!\[[^\]]*\]\(([^)]+\.png)\))")));
  const fs::path path = root() / picture[1].str();
  EXPECT_TRUE(file_text(path).starts_with("\x89PNG")) << path;
  EXPECT_LT(fs::file_size(path), 150U << 10) << path;
}

// The documents that this one links to; a link to a folder is one to its README.md.
std::set<fs::path> linked_from(const fs::path& document) {
  static const std::regex link(R"(\]\(([^)#\s]+)(#[^)\s]*)?\))");
  const std::string text = file_text(document);
  std::set<fs::path> documents;
  for (std::sregex_iterator match(text.begin(), text.end(), link), end; match != end; ++match) {
    fs::path target = document.parent_path() / (*match)[1].str();
    if (fs::is_directory(target)) target /= "README.md";
    if (target.extension() == ".md" && fs::exists(target)) documents.insert(fs::weakly_canonical(target));
  }
  return documents;
}

// Pages stand on the map itself, those of results/ and lab/ on the lists that it links to. A page that has moved keeps two lines that say
// where to; nothing leads there.
TEST_F(Documents, TheMapLeadsToEveryPage) {
  std::set<fs::path> found = linked_from(root() / "docs" / "README.md");
  for (const char* list : {"results", "lab"}) {
    const fs::path readme = root() / "docs" / list / "README.md";
    if (fs::exists(readme)) found.merge(linked_from(readme));
  }
  std::size_t count = 0;
  for (const fs::path& document : documents_and_results()) {
    const bool moved = file_text(document).find(" moved\n\nThis page is now ") != std::string::npos;
    if (moved || fs::equivalent(document, root() / "docs" / "README.md")) continue;
    ++count;
    EXPECT_TRUE(found.contains(fs::weakly_canonical(document))) << "no way from docs/README.md leads to " << document;
  }
  EXPECT_GE(count, 10U);
}

TEST_F(Documents, EveryRecipeIsListed) {
  const std::string list = file_text(root() / "docs/use/recipes.md");
  for (const fs::directory_entry& recipe : fs::directory_iterator(root() / "recipes")) {
    if (recipe.path().extension() != ".toml") continue;
    const std::string row = "\n| recipes/" + recipe.path().filename().string() + " | ";
    EXPECT_NE(list.find(row), std::string::npos) << "docs/use/recipes.md lacks " << recipe.path().filename();
  }
}

TEST_F(Documents, LinksLeadSomewhere) {
  const std::regex link(R"(\]\(([^)#\s]+)(#[^)\s]*)?\))");
  std::size_t count = 0;
  for (const fs::path& document : documents_and_results()) {
    const std::string text = file_text(document);
    for (std::sregex_iterator match(text.begin(), text.end(), link), end; match != end; ++match) {
      const std::string target = (*match)[1];
      if (target.find("://") != std::string::npos) continue;
      ++count;
      EXPECT_TRUE(fs::exists(document.parent_path() / target)) << document.filename() << " links to " << target;
    }
  }
  EXPECT_GE(count, 20U);
}

// The files that a worked example asks its reader to make: "New: `path`".
std::set<std::string> files_to_make(const std::string& text) {
  static const std::regex line("(^|\\n)New: `([^`]+)`");
  std::set<std::string> files;
  for (std::sregex_iterator match(text.begin(), text.end(), line), end; match != end; ++match) files.insert((*match)[2]);
  return files;
}

TEST_F(Documents, NamedFilesExist) {
  const std::regex name(
      R"((recipes|docs|tests|kernels|framework|models|app|interface|include|python|examples)/[A-Za-z0-9_/]+\.(toml|md|h|cpp|py|txt)\b)");
  std::size_t count = 0;
  for (const fs::path& document : documents_and_results()) {
    if (document.filename() == "CHANGELOG.md") continue;  // which names what is gone
    const std::string text = file_text(document);
    const std::set<std::string> to_make = files_to_make(text);
    for (std::sregex_iterator match(text.begin(), text.end(), name), end; match != end; ++match) {
      ++count;
      EXPECT_TRUE(fs::exists(root() / match->str()) || to_make.contains(match->str())) << document.filename() << " names " << match->str();
    }
  }
  EXPECT_GE(count, 1U);
}

TEST_F(Documents, ExamplesMakeFilesThatAreNotThere) {
  std::size_t count = 0;
  for (const fs::path& document : documents()) {
    for (const std::string& file : files_to_make(file_text(document))) {
      ++count;
      EXPECT_FALSE(fs::exists(root() / file)) << document.filename() << ": " << file << " is there already; take another example";
      EXPECT_TRUE(fs::exists((root() / file).parent_path())) << document.filename() << ": there is no room for " << file;
    }
  }
  EXPECT_GE(count, 5U);
  EXPECT_EQ(files_to_make("New: `a/b.h`. Text\nNew: `c.cu`\nNew is `d.h`, New: `e.h`"), (std::set<std::string>{"a/b.h", "c.cu"}));
}

// What was tried without gain: five fields a line, and a commit that can be looked up.
TEST_F(Documents, AttemptsHaveAllTheirFields) {
  const std::regex field(R"re("(?:[^"]|"")*"|[^",]*)re"), commit("[0-9a-f]{7,40}");
  std::istringstream lines(file_text(root() / "docs" / "lab" / "attempts.csv"));
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(line, "idea,kernel,effect,device,commit");
  std::size_t count = 0;
  while (std::getline(lines, line)) {
    ++count;
    std::vector<std::string> fields;
    std::size_t at = 0;
    for (std::smatch match; at <= line.size(); at += fields.back().size() + 1) {
      const std::string rest = line.substr(at);
      ASSERT_TRUE(std::regex_search(rest, match, field, std::regex_constants::match_continuous)) << line;
      fields.push_back(match.str());
      ASSERT_TRUE(at + fields.back().size() == line.size() || line[at + fields.back().size()] == ',') << line;
    }
    ASSERT_EQ(fields.size(), 5U) << line;
    for (const std::string& one : fields) EXPECT_FALSE(one.empty()) << line;
    EXPECT_TRUE(std::regex_match(fields.back(), commit)) << line;
  }
  EXPECT_GE(count, 100U);
}

// The tables of public headers that moved: where they stood there is none, where they stand there is.
TEST_F(Documents, HeadersThatMovedStandWhereTheChangelogSays) {
  const std::string changes = file_text(root() / "CHANGELOG.md");
  const std::regex row(R"(\n\| ([a-z_/]+\.h) \| ([a-z_/]+\.h)(, [a-z_/]+\.h)? \|)");
  std::size_t count = 0;
  std::set<std::string> present;
  for (std::sregex_iterator match(changes.begin(), changes.end(), row), end; match != end; ++match) {
    ++count;
    EXPECT_FALSE(fs::exists(root() / (*match)[1].str())) << (*match)[1] << " did not move";
    present.insert((*match)[2]);
    if ((*match)[3].matched) present.insert((*match)[3].str().substr(2));
  }
  for (const std::string& header : present) EXPECT_TRUE(fs::exists(root() / header)) << "CHANGELOG.md names " << header;
  EXPECT_GE(count, 80U);
}

}  // namespace
}  // namespace tilewave
