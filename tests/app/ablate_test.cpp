// tilewave ablate: its tables, files and exit codes.
#include <filesystem>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/app/process.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class AblateCommand : public testing::Test {
 protected:
  int run(std::vector<std::string> words) {
    const std::vector<std::string> all = {"ablate", "recipe.toml", "--device", "cpu", "--threads", "2", "--rounds", "2", "--steps", "2"};
    words.insert(words.begin(), all.begin(), all.end());
    Process process(folder_.path(), words);
    const int code = process.wait();
    output_ = process.output();
    errors_ = process.errors();
    return code;
  }
  Json ablation(const fs::path& folder) { return Json::parse(file_text(folder_.path() / folder / "ablation.json")); }

  void SetUp() override {
    write_text(folder_.path() / "recipe.toml", R"(
[model]
d_model = 32
d_ff = 48
heads = 2
encoder_layers = 1
decoder_layers = 1
vocabulary = 61
max_positions = 16
[data]
kind = "synthetic"
[batch]
source_tokens = 45
target_tokens = 50
sequence = 12
[ablation]
switches = "pad_vocabulary_to=1,8"
)");
  }

  TemporaryFolder folder_;
  std::string output_, errors_;
};

TEST_F(AblateCommand, TakesTheRecipesSwitchesAndWritesItsFiles) {
  ASSERT_EQ(run({}), 0) << errors_;
  EXPECT_NE(output_.find("equal bit for bit, 2 steps"), std::string::npos) << output_;
  const Json json = ablation("runs/recipe-ablation");
  ASSERT_EQ(json["variants"].size(), 2U);
  EXPECT_EQ(json["variants"][1]["name"], "pad_vocabulary_to=8");
  EXPECT_EQ(json["variants"][1]["vocabulary_padded"], 64);
  EXPECT_EQ(json["variants"][0]["losses"], json["variants"][1]["losses"]);
  const std::string csv = file_text(folder_.path() / "runs/recipe-ablation/ablation.csv");
  EXPECT_TRUE(csv.starts_with("name,baseline,source_rows,")) << csv;
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 3);
  const std::string page = file_text(folder_.path() / "runs/recipe-ablation/ablation.html");
  EXPECT_NE(page.find("<svg"), std::string::npos);
  EXPECT_EQ(page.find("http"), std::string::npos) << "the page needs nothing beside it";
  ASSERT_EQ(run({}), 0);
  EXPECT_TRUE(fs::exists(folder_.path() / "runs/recipe-ablation-2/ablation.json"));
}

TEST_F(AblateCommand, PrintsJsonAndKeepsToTheFolderItIsGiven) {
  ASSERT_EQ(run({"--json", "--out", "here"}), 0) << errors_;
  EXPECT_EQ(Json::parse(output_), ablation("here"));
  EXPECT_EQ(run({"--out", "here"}), 2);
  EXPECT_NE(errors_.find("here is not empty"), std::string::npos) << errors_;
}

TEST_F(AblateCommand, ABadValueIsASentenceAndTheOthersRun) {
  EXPECT_EQ(run({"--switch", "pad_vocabulary_to=1,-3,8"}), 2);
  EXPECT_NE(errors_.find("pad_vocabulary_to=-3: "), std::string::npos) << errors_;
  const Json json = ablation("runs/recipe-ablation");
  EXPECT_FALSE(json["variants"][1]["ran"].get<bool>());
  EXPECT_EQ(json["variants"][2]["same_loss"]["verdict"], "equal bit for bit");
}

TEST_F(AblateCommand, AnUnknownKeyEndsItAtOnce) {
  EXPECT_EQ(run({"--switch", "pad_vocabulary=1,8"}), 2);
  EXPECT_NE(errors_.find("did you mean guidelines.pad_vocabulary_to?"), std::string::npos) << errors_;
  EXPECT_FALSE(fs::exists(folder_.path() / "runs"));
}

}  // namespace
}  // namespace tilewave
