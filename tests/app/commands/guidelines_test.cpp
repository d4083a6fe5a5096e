// tilewave guidelines: figures come from the ablations that a file names; README's table is what it prints of docs/results.
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

constexpr std::string_view kBegin = "<!-- guidelines: printed by ./tilewave guidelines docs/results/guidelines-h200.json -->\n",
                           kEnd = "<!-- end of guidelines -->\n";

class GuidelinesCommand : public testing::Test {
 protected:
  int run(const std::string& file) {
    Process process(folder_.path(), {"guidelines", file});
    const int code = process.wait();
    output_ = process.output();
    errors_ = process.errors();
    return code;
  }

  TemporaryFolder folder_;
  std::string output_, errors_;
};

constexpr const char* kAblation = R"({"recipe": "r", "variants": [
  {"name": "a", "ran": true, "target_tokens": 100, "step_us": 300.0, "step_predicted_us": 200.0,
   "gemms": [{"layer": "decoder.projection", "time_us": 120.0, "predicted_us": 50.0},
             {"layer": "decoder.*.ffn.up", "time_us": 9.0, "predicted_us": 9.0}]},
  {"name": "b", "ran": true, "target_tokens": 200, "step_us": 400.0, "step_predicted_us": 500.0,
   "gemms": [{"layer": "decoder.projection", "time_us": 60.0, "predicted_us": 80.0},
             {"layer": "decoder.*.ffn.up", "time_us": 9.0, "predicted_us": 9.0}]},
  {"name": "c", "ran": false, "refused": "no"}]})";

TEST_F(GuidelinesCommand, ComputesGainsATokenFromTheVariantsThatAFileNames) {
  write_text(folder_.path() / "x/a.json", kAblation);
  write_text(folder_.path() / "x/g.json", R"({"rows": [{"guideline": "G", "claim": "C", "ablation": "a.json", "layer": "projection",
    "remark": "R", "command": "./x", "in_house": {"from": "a", "to": "b"}}]})");
  ASSERT_EQ(run("x/g.json"), 0) << errors_;
  EXPECT_NE(output_.find("| G | C | step -20.0 %, GEMMs +25.0 % | step +50.0 %, GEMMs 4.0x |  | R | `./x` |\n"), std::string::npos)
      << output_;
}

TEST_F(GuidelinesCommand, WhatIsMissingIsASentence) {
  write_text(folder_.path() / "a.json", kAblation);
  const auto rows = [&](const std::string& pair) {
    write_text(folder_.path() / "g.json", R"({"rows": [{"guideline": "G", "claim": "C", "ablation": "a.json", "layer": "projection",
      "remark": "R", "in_house": )" + pair + "}]}");
  };
  rows(R"({"from": "a", "to": "c"})");
  EXPECT_EQ(run("g.json"), 2);
  EXPECT_NE(errors_.find("no variant \"c\" of r ran."), std::string::npos) << errors_;
  rows(R"({"from": "a"})");
  EXPECT_EQ(run("g.json"), 2);
  EXPECT_NE(errors_.find("a row lacks \"to\", a string."), std::string::npos) << errors_;
  rows(R"({"from": "a", "to": "b"})");
  EXPECT_EQ(run("g.json"), 2);
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

// TILEWAVE_WRITE_DOCS=1 tilewave_tests --gtest_filter=GuidelinesCommand* --data tests writes the table instead.
TEST_F(GuidelinesCommand, PrintsReadmesTable) {
  const fs::path root = fs::absolute(test_environment().data).lexically_normal() / "..";
  if (!fs::exists(root / "README.md")) GTEST_SKIP() << "README.md is not beside --data";
  ASSERT_EQ(run(fs::canonical(root / "docs/results/guidelines-h200.json").string()), 0) << errors_;
  std::string readme = file_text(root / "README.md");
  const std::size_t begin = readme.find(kBegin), end = readme.find(kEnd);
  ASSERT_NE(begin, std::string::npos);
  ASSERT_NE(end, std::string::npos);
  const std::size_t first = begin + kBegin.size();
  if (std::getenv("TILEWAVE_WRITE_DOCS") != nullptr) write_text(root / "README.md", readme.substr(0, first) + output_ + readme.substr(end));
  readme = file_text(root / "README.md");
  EXPECT_TRUE(readme.substr(first, readme.find(kEnd) - first) == output_) << "the table is not what this prints:\n" << output_;
}

}  // namespace
}  // namespace tilewave
