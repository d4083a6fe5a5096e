// tilewave guidelines: figures come from the ablations that a file names; README's table is what it prints of docs/results.
#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>

#include "tests/app/process.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;

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
    "remark": "R", "in_house": {"from": "a", "to": "b"}}]})");
  ASSERT_EQ(run("x/g.json"), 0) << errors_;
  EXPECT_NE(output_.find("| G | C | step -20.0 %, GEMMs +25.0 % | step +50.0 %, GEMMs 4.0x |  | R |\n"), std::string::npos) << output_;
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
  write_text(folder_.path() / "g.json", "[]");
  EXPECT_EQ(run("g.json"), 2);
  EXPECT_NE(errors_.find("g.json has no \"rows\"."), std::string::npos) << errors_;
}

// TILEWAVE_WRITE_DOCS=1 tilewave_tests --gtest_filter=GuidelinesCommand.* --data tests writes the table instead.
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
