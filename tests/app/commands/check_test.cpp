// tilewave check at a prompt: its table, its objects, its exit codes.
#include <filesystem>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "tests/shell.h"
#include "tests/test_environment.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;

class CheckCommand : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(test_environment().program)) GTEST_SKIP() << "the program is not at --program";
  }
  static Outcome check(const std::string& options) {
    const fs::path recipe = fs::absolute(test_environment().data).lexically_normal() / ".." / "recipes" / "tiny.toml";
    return shell(quoted(fs::absolute(test_environment().program).string()) + " check " + quoted(recipe.string()) + " " + options, "/");
  }
  static bool says(const Outcome& outcome, const std::string& text) { return outcome.output.find(text) != std::string::npos; }
};

TEST_F(CheckCommand, PrintsATableAndAVerdict) {
  const Outcome outcome = check("--layer layer_norm");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  for (const char* text : {"layer ", "tensor ", "probes", "norm", "error", "verdict\n", "  pass\n", "\n(--wide adds shape)\n"})
    EXPECT_TRUE(says(outcome, text)) << outcome.output;
  EXPECT_TRUE(says(check("--layer layer_norm --wide"), "[1, 32]"));
  EXPECT_FALSE(says(outcome, "FAIL"));
  EXPECT_TRUE(outcome.output.ends_with("all 3 gradients agree with central differences within 1e-06\n")) << outcome.output;
}

TEST_F(CheckCommand, FailsWhereATermIsWrong) {
  const Outcome outcome = check("--layer layer_norm --plant layer_norm");
  EXPECT_EQ(outcome.status, 1) << outcome.output;
  EXPECT_TRUE(says(outcome, "  FAIL\n")) << outcome.output;
  EXPECT_TRUE(says(outcome, " of 3 gradients differ")) << outcome.output;
}

TEST_F(CheckCommand, PrintsObjects) {
  const Outcome outcome = check("--layer layer_norm --json --set model.d_model=256");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  std::istringstream lines(outcome.output);
  std::vector<nlohmann::json> objects;
  for (std::string line; std::getline(lines, line);) objects.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(objects.size(), 5U) << outcome.output;
  EXPECT_EQ(objects[0], nlohmann::json::parse(R"({"reduced": "model.d_model", "from": 256, "to": 128})"));
  for (std::size_t i = 1; i <= 3; ++i) {
    EXPECT_EQ(objects[i]["layer"], "layer_norm");
    EXPECT_EQ(objects[i]["passed"], true);
    EXPECT_LT(objects[i]["error"].get<double>(), 1e-6);
    EXPECT_GT(objects[i]["norm"].get<double>(), 0.0);
  }
  EXPECT_EQ(objects[4]["passed"], true);
  EXPECT_EQ(objects[4]["tensors"], 3);
}

TEST_F(CheckCommand, ListsTheNamesThereAre) {
  const Outcome layer = check("--layer attention");
  EXPECT_EQ(layer.status, 2) << layer.output;
  EXPECT_TRUE(layer.output.starts_with("tilewave: --layer attention")) << "nothing before a refusal: " << layer.output;
  EXPECT_TRUE(says(layer, "cross_attention, ffn")) << layer.output;
  const Outcome plant = check("--layer ffn --plant dropout");
  EXPECT_EQ(plant.status, 2) << plant.output;
  EXPECT_TRUE(says(plant, "--plant dropout") && says(plant, "it has feed_forward, layer_norm.")) << plant.output;
}

}  // namespace
}  // namespace tilewave
