// docs/use/guide.md's table of what NVIDIA's guides say in numbers: each row has the command that answers it and what that prints. The
// commands are run; what the table shows is what they print, and within the row's tolerance of the guide's number.
// TILEWAVE_WRITE_DOCS=1 in the environment writes the answers first.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <set>
#include <sstream>

#include "tests/app/process.h"
#include "tests/repository_root.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::string_view kTableBegins = "<!-- statements: checked by GuidePage -->\n", kTableEnds = "<!-- end of statements -->\n";

// number | where | claim | class | command | the guide's | tilewave's | tolerance
struct StatementRow {
  std::vector<std::string> cells;
  const std::string& kind() const { return cells[3]; }
  const std::string& guides() const { return cells[5]; }
  const std::string& tolerance() const { return cells[7]; }
  bool tested() const { return kind() == "computed" || kind() == "predicted"; }
  // Without the program's name and the backticks.
  std::string command() const {
    static const std::regex call("`\\./tilewave (.*)`");
    std::smatch match;
    return std::regex_match(cells[4], match, call) ? match[1].str() : std::string();
  }
  // "`key` = value"
  std::pair<std::string, std::string> answer() const {
    static const std::regex form("`([^`]*)` = (.*)");
    std::smatch match;
    return std::regex_match(cells[6], match, form) ? std::pair{match[1].str(), match[2].str()} : std::pair<std::string, std::string>{};
  }
};

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(' '), last = text.find_last_not_of(' ');
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

StatementRow row_of(const std::string& line) {
  StatementRow row;
  std::istringstream cells(line.substr(1));
  for (std::string cell; std::getline(cells, cell, '|');) row.cells.push_back(trimmed(cell));
  return row;
}

// Words as a shell would split them, single quotes alone.
std::vector<std::string> words_of(const std::string& command) {
  std::vector<std::string> words;
  bool quoted = false, begun = false;
  for (const char letter : command) {
    if (letter == '\'') {
      quoted = !quoted;
    } else if (letter == ' ' && !quoted) {
      begun = false;
    } else {
      if (!begun) words.emplace_back();
      begun = true;
      words.back() += letter;
    }
  }
  return words;
}

// "selector: field", the selector being a text that some field of the line has; or a field of the first line that has it.
std::optional<Json> find_answer(const std::vector<Json>& lines, const std::string& key) {
  const std::size_t colon = key.rfind(": ");
  const std::string selector = colon == std::string::npos ? "" : key.substr(0, colon);
  const std::string field = colon == std::string::npos ? key : key.substr(colon + 2);
  for (const Json& line : lines) {
    const bool selected = selector.empty() || std::any_of(line.begin(), line.end(), [&](const Json& value) { return value == selector; });
    if (selected && line.contains(field)) return line.at(field);
  }
  return std::nullopt;
}

// Of what is predicted three digits: more would only say which compiler was asked.
std::string text_of_answer(const Json& answer, const StatementRow& row) {
  constexpr int kOfArithmetic = 5, kOfPredictions = 3;
  if (answer.is_string()) return answer.get<std::string>();
  if (answer.is_number_integer()) return std::to_string(answer.get<std::int64_t>());
  if (!answer.is_number()) return "null";
  std::ostringstream text;
  text.precision(row.kind() == "predicted" ? kOfPredictions : kOfArithmetic);
  text << answer.get<double>();
  return text.str();
}

// "guide_cuda_cores", a kernel's name, as the guide says it.
std::string plain_word(std::string word) {
  constexpr std::string_view kOfKernels = "guide_";
  if (word.starts_with(kOfKernels)) word.erase(0, kOfKernels.size());
  for (char& letter : word) letter = letter == '_' ? ' ' : static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return word;
}

bool is_bound(const std::string& text) { return text.starts_with("< ") || text.starts_with("> "); }

// What is wrong with an answer beside the guide's number, or nothing.
std::string disagreement(const Json& answer, const std::string& guides, const std::string& tolerance) {
  if (answer.is_string()) {
    const std::string& word = tolerance == "exact" ? guides : tolerance;
    return plain_word(answer.get<std::string>()) == plain_word(word) ? "" : "it is another word";
  }
  if (!answer.is_number()) return "it is no number";
  const double value = answer.get<double>();
  // Where the guide prints no number but a word, the tolerance is what tells that word.
  const std::string& told = is_bound(tolerance) ? tolerance : guides;
  std::istringstream text(is_bound(told) ? told.substr(2) : told);
  double number = NAN;
  if (!(text >> number)) return "the guide's is no number";
  if (told.starts_with("< ")) return value < number ? "" : "it is not less";
  if (told.starts_with("> ")) return value > number ? "" : "it is not more";
  double most = 0.0;
  std::string unit;
  if (tolerance != "exact") {
    std::istringstream within(tolerance);
    if (!(within >> most)) return "the tolerance is no number";
    if (within >> unit) most *= std::abs(number) / 100.0;
  }
  return std::abs(value - number) <= most + 1e-12 * std::abs(number) ? "" : "it is too far off";
}

class GuidePage : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(test_environment().program)) GTEST_SKIP() << "the program is not at --program";
    if (!fs::exists(path_)) GTEST_SKIP() << "the documents are not beside --data";
    text_ = file_text(path_);
    const std::size_t begins = text_.find(kTableBegins);
    ASSERT_NE(begins, std::string::npos) << kTableBegins;
    std::istringstream lines(text_.substr(begins, text_.find(kTableEnds) - begins));
    const std::regex numbered("\\| [0-9]+ \\|.*");
    for (std::string line; std::getline(lines, line);) {
      if (std::regex_match(line, numbered)) rows_.push_back(row_of(line));
    }
  }

  // What each command prints as JSON, a few processes at a time.
  void run_commands() {
    constexpr std::size_t kAtATime = 4;
    std::set<std::string> commands;
    for (const StatementRow& row : rows_) {
      if (row.tested()) commands.insert(row.command());
    }
    std::vector<std::string> left(commands.begin(), commands.end());
    for (std::size_t begin = 0; begin < left.size(); begin += kAtATime) {
      std::vector<std::unique_ptr<Process>> processes;
      const std::size_t end = std::min(left.size(), begin + kAtATime);
      for (std::size_t i = begin; i < end; ++i) {
        std::vector<std::string> words = words_of(left[i]);
        words.emplace_back("--json");
        const fs::path folder = folder_.path() / std::to_string(i);
        fs::create_directories(folder);
        // Pictures take a Python, which is not found so.
        processes.push_back(std::make_unique<Process>(folder, words, [] { ::setenv("PATH", "/nonexistent", 1); }));
      }
      for (std::size_t i = begin; i < end; ++i) {
        Process& process = *processes[i - begin];
        ASSERT_EQ(process.wait(), 0) << left[i] << "\n" << process.errors();
        std::istringstream lines(process.output());
        for (std::string line; std::getline(lines, line);) answers_[left[i]].push_back(Json::parse(line));
      }
    }
  }

  // The page's answers anew.
  void write_answers() {
    std::string text = text_;
    for (StatementRow& row : rows_) {
      if (!row.tested()) continue;
      const auto [key, shown] = row.answer();
      const std::optional<Json> answer = find_answer(answers_[row.command()], key);
      ASSERT_TRUE(answer) << row.cells[0] << ": " << row.command() << " prints no " << key;
      const std::string cell = "`" + key + "` = " + text_of_answer(*answer, row);
      const std::size_t line = text.find("\n| " + row.cells[0] + " | "), at = text.find("| " + row.cells[6] + " |", line);
      ASSERT_NE(at, std::string::npos) << row.cells[0];
      text.replace(at + 2, row.cells[6].size(), cell);
      row.cells[6] = cell;
    }
    write_text(path_, text);
  }

  const fs::path path_ = root() / "docs/use/guide.md";
  TemporaryFolder folder_;
  std::string text_;
  std::vector<StatementRow> rows_;
  std::map<std::string, std::vector<Json>> answers_;
};

TEST_F(GuidePage, EveryStatementIsWhole) {
  const std::set<std::string> kinds = {"computed", "predicted", "measured here", "theirs alone"};
  std::map<std::string, int> count;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const StatementRow& row = rows_[i];
    ASSERT_EQ(row.cells.size(), 8U) << row.cells[0];
    EXPECT_EQ(row.cells[0], std::to_string(i + 1));
    EXPECT_TRUE(kinds.contains(row.kind())) << row.cells[0] << ": " << row.kind();
    for (const int cell : {1, 2, 5}) EXPECT_FALSE(row.cells[cell].empty()) << row.cells[0];
    ++count[row.kind()];
    if (!row.tested()) {
      EXPECT_TRUE(row.tolerance().empty()) << row.cells[0] << ": nobody tests it";
      EXPECT_FALSE(row.cells[6].empty()) << row.cells[0];
      continue;
    }
    EXPECT_FALSE(row.command().empty()) << row.cells[0];
    EXPECT_FALSE(row.answer().first.empty()) << row.cells[0];
    if (row.kind() != "computed" || row.tolerance() == "exact" || is_bound(row.tolerance())) continue;
    // Of what is computed only digits that the guide leaves out may differ.
    const double tolerance = std::stod(row.tolerance()), guides = std::stod(row.guides());
    EXPECT_TRUE(row.tolerance().find('%') == std::string::npos && tolerance <= 0.0125 * guides) << row.cells[0] << ": " << row.tolerance();
  }
  EXPECT_GE(rows_.size(), 170U);
  EXPECT_GE(count["computed"], 100);
  EXPECT_GE(count["predicted"], 30);
}

TEST_F(GuidePage, AnswersAreWhatTheCommandsPrint) {
  run_commands();
  if (HasFatalFailure()) return;
  if (std::getenv("TILEWAVE_WRITE_DOCS") != nullptr) write_answers();
  for (const StatementRow& row : rows_) {
    if (!row.tested()) continue;
    const auto [key, shown] = row.answer();
    const std::optional<Json> answer = find_answer(answers_[row.command()], key);
    if (!answer) {
      ADD_FAILURE() << row.cells[0] << ": " << row.command() << " prints no " << key;
      continue;
    }
    EXPECT_EQ(shown, text_of_answer(*answer, row)) << row.cells[0] << ": " << row.command();
    const std::string wrong = disagreement(*answer, row.guides(), row.tolerance());
    EXPECT_EQ(wrong, "") << row.cells[0] << ": " << row.cells[2] << ": the guide " << row.guides() << ", tilewave "
                         << text_of_answer(*answer, row) << ", tolerance " << row.tolerance();
  }
}

// The check can fail.
TEST(GuidePageCheck, SeesWhatDisagrees) {
  EXPECT_EQ(disagreement(117, "117", "exact"), "");
  EXPECT_NE(disagreement(118, "117", "exact"), "");
  EXPECT_EQ(disagreement(124.12, "124.1", "0.05"), "");
  EXPECT_NE(disagreement(124.2, "124.1", "0.05"), "");
  EXPECT_EQ(disagreement(1.9, "2", "5 %"), "");
  EXPECT_NE(disagreement(1.89, "2", "5 %"), "");
  EXPECT_EQ(disagreement(0.9, "< 1", "exact"), "");
  EXPECT_NE(disagreement(1.0, "< 1", "exact"), "");
  EXPECT_NE(disagreement(1.0, "> 1", "exact"), "");
  EXPECT_EQ(disagreement(4.1, "dramatic", "> 4"), "");
  EXPECT_NE(disagreement(3.9, "dramatic", "> 4"), "");
  EXPECT_NE(disagreement(3.9, "dramatic", "exact"), "");
  EXPECT_EQ(disagreement("memory", "memory", "exact"), "");
  EXPECT_NE(disagreement("math", "memory", "exact"), "");
  EXPECT_EQ(disagreement("guide_cuda_cores", "CUDA cores", "exact"), "");
  EXPECT_NE(disagreement("guide_tensor_cores", "CUDA cores", "exact"), "");
  EXPECT_EQ(disagreement("launch", "not saturated", "launch"), "");
  EXPECT_NE(disagreement("memory", "not saturated", "launch"), "");
  EXPECT_NE(disagreement(Json(), "1", "exact"), "");
  const std::vector<Json> lines = {{{"kind", "gemm"}, {"role", "forward"}, {"m", 1}}, {{"kind", "gemm"}, {"role", "wgrad"}, {"m", 2}}};
  EXPECT_EQ(*find_answer(lines, "m"), 1);
  EXPECT_EQ(*find_answer(lines, "wgrad: m"), 2);
  EXPECT_FALSE(find_answer(lines, "dgrad: m"));
  EXPECT_EQ(words_of("plan --layer '4 <-1' x"), (std::vector<std::string>{"plan", "--layer", "4 <-1", "x"}));
}

}  // namespace
}  // namespace tilewave
