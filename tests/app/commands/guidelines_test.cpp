// tilewave guidelines: figures come from the ablations that a file names; the tables of README and docs/use/guidelines.md are what it
// prints of docs/results.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "kernels/core/device_profiles.h"
#include "models/planning/ablation_settings.h"
#include "models/planning/resolve.h"
#include "models/recipe/recipe.h"
#include "tests/app/process.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::string_view kEnd = "<!-- end of guidelines -->\n";

class GuidelinesCommand : public testing::Test {
 protected:
  int run(const std::string& file, const std::vector<std::string>& options = {}) {
    std::vector<std::string> words = {"guidelines", file};
    words.insert(words.end(), options.begin(), options.end());
    Process process(folder_.path(), words);
    const int code = process.wait();
    output_ = process.output();
    errors_ = process.errors();
    return code;
  }

  // The document's table is what the command prints; TILEWAVE_WRITE_DOCS=1 in the environment writes it there first.
  void expect_table(const std::string& document, const std::vector<std::string>& options) {
    const fs::path root = fs::absolute(test_environment().data).lexically_normal() / "..", path = root / document;
    if (!fs::exists(path)) GTEST_SKIP() << document << " is not beside --data";
    ASSERT_EQ(run(fs::canonical(root / "docs/results/guidelines-h200.json").string(), options), 0) << errors_;
    std::string begins = "<!-- guidelines: printed by ./tilewave guidelines docs/results/guidelines-h200.json";
    for (const std::string& option : options) begins += " " + option;
    begins += " -->\n";
    std::string text = file_text(path);
    const std::size_t begin = text.find(begins), end = text.find(kEnd);
    ASSERT_NE(begin, std::string::npos) << begins;
    ASSERT_NE(end, std::string::npos) << kEnd;
    const std::size_t first = begin + begins.size();
    if (std::getenv("TILEWAVE_WRITE_DOCS") != nullptr) write_text(path, text.substr(0, first) + output_ + text.substr(end));
    text = file_text(path);
    EXPECT_TRUE(text.substr(first, text.find(kEnd) - first) == output_) << "the table is not what this prints:\n" << output_;
  }

  TemporaryFolder folder_;
  std::string output_, errors_;
};

constexpr const char* kAblation = R"({"recipe": "r", "variants": [
  {"name": "a", "ran": true, "target_tokens": 100, "step_us": 300.0, "step_predicted_us": 200.0,
   "gemms": [{"layer": "decoder.projection", "role": "forward", "count": 1, "time_us": 120.0, "predicted_us": 50.0},
             {"layer": "decoder.*.ffn.up", "role": "wgrad", "count": 6, "time_us": 9.0, "predicted_us": 9.0}]},
  {"name": "b", "ran": true, "target_tokens": 200, "step_us": 400.0, "step_predicted_us": 500.0,
   "gemms": [{"layer": "decoder.projection", "role": "forward", "count": 1, "time_us": 60.0, "predicted_us": 80.0},
             {"layer": "decoder.*.ffn.up", "role": "wgrad", "count": 6, "time_us": 9.0, "predicted_us": 9.0}]},
  {"name": "c", "ran": false, "refused": "no"}]})";

std::string row(const std::string& pair, const std::string& command = R"("command": "./x", )") {
  return R"({"guideline": "G", "change": "N", "says": "S", "claim": "C", "ablation": "a.json", "layer": "projection",
    "remark": "R", )" +
         command + R"("in_house": {)" + pair + "}}";
}
std::string with_rows(const std::string& pair) { return R"({"commit": "0", "device": "D", "rows": [)" + row(pair) + "]}"; }

TEST_F(GuidelinesCommand, ComputesGainsATokenFromTheVariantsThatAFileNames) {
  write_text(folder_.path() / "x/a.json", kAblation);
  write_text(folder_.path() / "x/g.json", with_rows(R"("from": "a", "to": "b")"));
  ASSERT_EQ(run("x/g.json"), 0) << errors_;
  EXPECT_NE(output_.find("\n| G | N | S | -20.0 % (+25.0 %) | +50.0 % (4.0x) |  |\n"), std::string::npos) << output_;
  ASSERT_EQ(run("x/g.json", {"--wide"}), 0) << errors_;
  EXPECT_NE(output_.find("\n| G | N | -20.0 % | +25.0 % | +50.0 % | 4.0x |  |  |\n"), std::string::npos) << output_;
  EXPECT_NE(output_.find("\n| G | C | R | `./x` |\n"), std::string::npos) << output_;
}

TEST_F(GuidelinesCommand, PrintsAHeadingAsWideAsItsRowsAndSixColumnsAtMost) {
  write_text(folder_.path() / "a.json", kAblation);
  write_text(folder_.path() / "g.json", with_rows(R"("from": "a", "to": "b")"));
  ASSERT_EQ(run("g.json"), 0) << errors_;
  std::istringstream lines(output_);
  for (std::string line; std::getline(lines, line);) EXPECT_EQ(std::ranges::count(line, '|'), 7) << line;
}

TEST_F(GuidelinesCommand, DrawsAPictureOrSaysWhyNot) {
  write_text(folder_.path() / "a.json", kAblation);
  write_text(folder_.path() / "g.json", with_rows(R"("from": "a", "to": "b")"));
  const int code = run("g.json", {"--plot"});
  EXPECT_EQ(output_, "");
  const bool drawn = fs::exists(folder_.path() / "g.png");
  EXPECT_EQ(code, drawn ? 0 : 1) << errors_;
  EXPECT_EQ(errors_.find("g.png could not be made") == std::string::npos, drawn) << errors_;
  if (drawn) {
    EXPECT_TRUE(file_text(folder_.path() / "g.png").starts_with("\x89PNG"));
  }
  write_text(folder_.path() / "n.json", R"({"rows": [)" + row(R"("from": "a", "to": "b")") + "]}");
  EXPECT_EQ(run("n.json", {"--plot"}), 1);  // no device, no commit
  EXPECT_NE(errors_.find("n.png could not be made"), std::string::npos) << errors_;
  EXPECT_FALSE(fs::exists(folder_.path() / "n.png"));
  EXPECT_EQ(run("g.json", {"--plot", "--wide"}), 2);
}

TEST_F(GuidelinesCommand, WhatIsMissingIsASentence) {
  write_text(folder_.path() / "a.json", kAblation);
  write_text(folder_.path() / "g.json", with_rows(R"("from": "a", "to": "c")"));
  EXPECT_EQ(run("g.json"), 2);
  EXPECT_NE(errors_.find("no variant \"c\" of r ran."), std::string::npos) << errors_;
  write_text(folder_.path() / "g.json", with_rows(R"("from": "a")"));
  EXPECT_EQ(run("g.json"), 2);
  EXPECT_NE(errors_.find("a row lacks \"to\", a string."), std::string::npos) << errors_;
  write_text(folder_.path() / "g.json", R"({"rows": [)" + row(R"("from": "a", "to": "b")", "") + "]}");
  EXPECT_EQ(run("g.json", {"--plot"}), 2);
  EXPECT_NE(errors_.find("a row lacks \"command\", a string."), std::string::npos) << errors_;
  write_text(folder_.path() / "g.json", "[]");
  EXPECT_EQ(run("g.json"), 2);
  EXPECT_NE(errors_.find("g.json has no \"rows\"."), std::string::npos) << errors_;
}

// What a row's command runs, as tilewave ablate reads it.
struct RowsAblation {
  Recipe recipe;
  std::vector<Setting> settings;
};

RowsAblation ablation_of(const std::string& command, const fs::path& root) {
  std::istringstream words(command);
  std::string program, name, path, switches;
  words >> program >> name >> path;
  EXPECT_EQ(program + " " + name, "./tilewave ablate") << command;
  std::vector<std::string> overrides;
  for (std::string option, value; words >> option >> value;) {
    EXPECT_TRUE(option == "--set" || option == "--switch") << command;
    if (option == "--set") overrides.push_back(value);
    if (option == "--switch") switches += value + " ";
  }
  return {.recipe = read_recipe(root / path, overrides), .settings = settings_of(parse_switches(switches))};
}

std::size_t number_of(const Recipe& recipe, const RowsAblation& ablation) {
  std::size_t number = 0;
  while (number < ablation.settings.size() && !(with_setting(ablation.recipe, ablation.settings[number]) == recipe)) ++number;
  return number;
}

// Whoever types a row's command gets both of the row's settings, the second compared with the first, and they are the stored ones.
TEST(GuidelinesCommands, MeasureTheRowsSettingsBesideEachOther) {
  const fs::path root = fs::absolute(test_environment().data).lexically_normal() / "..", results = root / "docs/results";
  if (!fs::exists(results)) GTEST_SKIP() << "docs is not beside --data";
  const Json file = Json::parse(file_text(results / "guidelines-h200.json"));
  const DeviceInfo& h200 = device_profile("h200").device;
  for (const Json& row : file.at("rows")) {
    const std::string command = row.at("command");
    SCOPED_TRACE(command);
    const RowsAblation ablation = ablation_of(command, root);
    const Json stored = Json::parse(file_text(results / row.at("ablation").get<std::string>()));
    EXPECT_EQ(stored.at("recipe"), ablation.recipe.name);
    for (const char* engine : {"in_house", "cublaslt"}) {
      if (!row.contains(engine)) continue;
      std::map<std::string, std::size_t> numbers;
      for (const char* end : {"from", "to"}) {
        const std::string name = row.at(engine).at(end);
        SCOPED_TRACE(name);
        const Recipe recipe = with_setting(ablation.recipe, settings_of(parse_switches(name)).at(0));
        numbers[end] = number_of(recipe, ablation);
        ASSERT_LT(numbers[end], ablation.settings.size()) << "no setting of the command's";
        const auto variant =
            std::ranges::find_if(stored.at("variants"), [&](const Json& one) { return one.at("name").get<std::string>() == name; });
        ASSERT_NE(variant, stored.at("variants").end());
        const ResolvedRecipe resolved = resolve(recipe, {}, h200);
        EXPECT_EQ(variant->at("source_rows"), resolved.shapes.source_rows);
        EXPECT_EQ(variant->at("target_rows"), resolved.shapes.target_rows);
        EXPECT_EQ(variant->at("vocabulary_padded"), resolved.shapes.vocabulary_padded);
        ASSERT_EQ(variant->at("adjustments").size(), resolved.adjustments.size());
        for (std::size_t i = 0; i < resolved.adjustments.size(); ++i) {
          EXPECT_EQ(variant->at("adjustments")[i].at("rule"), resolved.adjustments[i].rule);
          EXPECT_EQ(variant->at("adjustments")[i].at("to"), resolved.adjustments[i].to);
        }
      }
      EXPECT_NE(numbers["from"], numbers["to"]);
      EXPECT_EQ(ablation.settings[numbers["to"]].baseline, numbers["from"]);
    }
  }
}

// TILEWAVE_WRITE_DOCS=1 tilewave_tests --gtest_filter=GuidelinesCommand* --data tests writes the tables instead.
TEST_F(GuidelinesCommand, PrintsReadmesTable) { expect_table("README.md", {}); }

TEST_F(GuidelinesCommand, PrintsTheTablesOfItsPage) { expect_table("docs/use/guidelines.md", {"--wide"}); }

}  // namespace
}  // namespace tilewave
