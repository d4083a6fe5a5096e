// docs/understand/glossary.md is kept: no identifier that it retires stands in the code again, no phrase in comments, messages or pages.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <gtest/gtest.h>
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

struct Retired {
  std::string word;                // an identifier, or a piece of code
  std::vector<std::string> where;  // how root-relative paths begin, or "everywhere"
};

// The text between backticks, or quotation marks, in a table's cell.
std::vector<std::string> quoted_in(const std::string& cell, char mark) {
  std::vector<std::string> words;
  for (std::size_t begin = cell.find(mark); begin != std::string::npos;) {
    const std::size_t end = cell.find(mark, begin + 1);
    if (end == std::string::npos) break;
    words.push_back(cell.substr(begin + 1, end - begin - 1));
    begin = cell.find(mark, end + 1);
  }
  return words;
}

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream stream(line.substr(1));
  for (std::string cell; std::getline(stream, cell, '|');) cells.push_back(cell);
  return cells;
}

std::string part_between(const std::string& page, const std::string& from, const std::string& to) {
  const std::size_t begin = page.find(from), end = page.find(to, begin);
  return begin == std::string::npos || end == std::string::npos ? std::string() : page.substr(begin, end - begin);
}

std::vector<Retired> retired_identifiers(const std::string& page) {
  std::vector<Retired> retired;
  std::istringstream lines(part_between(page, "## Retired identifiers", "## Retired phrases"));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| `")) continue;
    const std::vector<std::string> cells = cells_of(line);
    retired.push_back({.word = quoted_in(cells.at(0), '`').at(0), .where = quoted_in(cells.at(2), '`')});
  }
  return retired;
}

std::vector<std::string> retired_phrases(const std::string& page) {
  std::vector<std::string> phrases;
  std::istringstream lines(part_between(page, "## Retired phrases", "## Names of kernels"));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| \"")) continue;
    for (const std::string& phrase : quoted_in(cells_of(line).at(0), '"')) phrases.push_back(phrase);
  }
  return phrases;
}

// What a compiler sees as code: comments and strings are blank.
std::string code_of(const std::string& source) {
  static const std::regex told(
      R"re(//[^\n]*|/\*[^*]*\*+([^/*][^*]*\*+)*/|R"\((?:[^)]|\)[^"])*\)"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+')re");
  return std::regex_replace(source, told, " ");
}

bool is_word_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Whether `word` stands in the code, no part of a longer identifier.
bool has_word(const std::string& code, const std::string& word) {
  for (std::size_t at = code.find(word); at != std::string::npos; at = code.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    const bool opens = !is_word_character(word.front()) || at == 0 || !is_word_character(code[at - 1]);
    const bool closes = !is_word_character(word.back()) || end == code.size() || !is_word_character(code[end]);
    if (opens && closes) return true;
  }
  return false;
}

bool is_retired_in(const Retired& retired, const std::string& file) {
  return std::any_of(retired.where.begin(), retired.where.end(),
                     [&](const std::string& where) { return where == "everywhere" || file.starts_with(where); });
}

// Small letters, and one space for all white space between two words, and for the start of a comment's next line.
std::string prose_of(const std::string& text) {
  std::string prose;
  bool fresh = false;  // the line has had no word yet
  for (const char c : text) {
    const bool space = std::isspace(static_cast<unsigned char>(c)) != 0;
    fresh = c == '\n' || (fresh && (space || c == '/' || c == '#'));
    if (!space && !fresh) {
      prose += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!prose.ends_with(' ')) {
      prose += ' ';
    }
  }
  return prose;
}

// In any case of letters, over the ends of lines, and in the plural.
bool has_phrase(const std::string& prose, const std::string& phrase) {
  const std::string one = prose_of(phrase);
  return has_word(prose, one) || has_word(prose, one + "s");
}

std::vector<std::string> files_under(const std::vector<std::string>& folders, const std::set<std::string>& extensions) {
  std::vector<std::string> files;
  for (const std::string& folder : folders) {
    if (!fs::exists(root() / folder)) continue;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root() / folder)) {
      if (extensions.contains(entry.path().extension().string())) files.push_back(fs::relative(entry.path(), root()).generic_string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

class Glossary : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(root() / "docs/understand/glossary.md")) GTEST_SKIP() << "the documents are not beside --data";
    page_ = file_text(root() / "docs/understand/glossary.md");
  }
  std::string page_;
};

TEST_F(Glossary, RetiredIdentifiersDoNotComeBack) {
  const std::vector<Retired> all = retired_identifiers(page_);
  EXPECT_GE(all.size(), 300U);
  const std::vector<std::string> files = files_under({"kernels", "framework", "models", "app", "tests", "examples"}, {".h", ".cpp", ".cu"});
  for (const Retired& retired : all) {
    EXPECT_FALSE(retired.where.empty()) << retired.word << " says nowhere where";
    for (const std::string& where : retired.where) {
      const bool there = std::any_of(files.begin(), files.end(), [&](const std::string& file) { return file.starts_with(where); });
      EXPECT_TRUE(where == "everywhere" || there) << retired.word << ": there is no " << where;
    }
  }
  for (const std::string& file : files) {
    const std::string code = code_of(file_text(root() / file));
    for (const Retired& retired : all) {
      if (is_retired_in(retired, file)) {
        EXPECT_FALSE(has_word(code, retired.word)) << file << " has the retired " << retired.word;
      }
    }
  }
}

TEST_F(Glossary, RetiredPhrasesDoNotComeBack) {
  const std::vector<std::string> phrases = retired_phrases(page_);
  EXPECT_GE(phrases.size(), 10U);
  std::vector<std::string> files =
      files_under({"kernels", "framework", "models", "app", "tests", "examples", "recipes"}, {".h", ".cpp", ".cu", ".toml"});
  for (const std::string& page : files_under({"docs/use", "docs/understand", "docs/extend"}, {".md"})) files.push_back(page);
  files.insert(files.end(), {"README.md", "docs/README.md"});
  for (const std::string& file : files) {
    if (file == "docs/understand/glossary.md" || file == "tests/glossary_test.cpp" || !fs::exists(root() / file)) continue;
    const std::string prose = prose_of(file_text(root() / file));
    for (const std::string& phrase : phrases) EXPECT_FALSE(has_phrase(prose, phrase)) << file << " says \"" << phrase << "\"";
  }
}

TEST_F(Glossary, WhatComesBackIsSeen) {
  const std::string page =
      "## Retired identifiers\n| `leave` | `write_partials` | `kernels/a.cu`, `models/` | x |\n| `kMost` | `kMax` | `everywhere` | x |\n"
      "## Retired phrases\n| \"late store\", \"block of K\" | x | y |\n## Names of kernels\n";
  const std::vector<Retired> retired = retired_identifiers(page);
  ASSERT_EQ(retired.size(), 2U);
  EXPECT_TRUE(is_retired_in(retired[0], "kernels/a.cu") && is_retired_in(retired[0], "models/x/y.h"));
  EXPECT_FALSE(is_retired_in(retired[0], "kernels/b.cu"));
  EXPECT_TRUE(is_retired_in(retired[1], "tests/b.cpp"));
  EXPECT_TRUE(has_word("x.leave();", "leave") && has_word("kMost", "kMost"));
  EXPECT_FALSE(has_word("leaves; kMostRows; take_leave", "leave") || has_word("kMostRows", "kMost"));
  EXPECT_EQ(code_of("a /* leave */ b // leave\nc \"leave\" 'l'"), "a   b  \nc    ");
  EXPECT_EQ(retired_phrases(page), (std::vector<std::string>{"late store", "block of K"}));
  EXPECT_TRUE(has_phrase(prose_of("two Late stores"), "late store") && has_phrase(prose_of("// a block\n  // of K"), "block of K"));
  EXPECT_FALSE(has_phrase(prose_of("blocks of Kb"), "block of K") || has_phrase(prose_of("related stores"), "late store"));
}

}  // namespace
}  // namespace tilewave
