// tilewave figures as a process: the list, what it writes, what it continues, what it refuses; plan --draw.
#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/app/process.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

class FiguresCommand : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(test_environment().program)) GTEST_SKIP() << "the program is not at --program";
  }
  int run(const std::vector<std::string>& words) {
    Process process(folder_.path(), words);
    const int code = process.wait();
    output_ = process.output(), errors_ = process.errors();
    return code;
  }
  std::vector<Json> lines() const {
    std::vector<Json> all;
    std::istringstream stream(output_);
    for (std::string line; std::getline(stream, line);) all.push_back(Json::parse(line));
    return all;
  }
  fs::path in_folder(const char* name) const { return folder_.path() / name; }

  TemporaryFolder folder_;
  std::string output_, errors_;
};

TEST_F(FiguresCommand, ListsThemAndWhatIsNotHereYet) {
  ASSERT_EQ(run({"figures", "--for", "h200"}), 0) << errors_;
  for (const char* part : {"wave_quantization", "alignment_k", "not here yet", "convolution takes"}) {
    EXPECT_NE(output_.find(part), std::string::npos) << part;
  }
  EXPECT_FALSE(fs::exists(in_folder("runs")));
  ASSERT_EQ(run({"figures", "--device", "cpu", "--threads", "1", "--json"}), 0) << errors_;
  const std::vector<Json> figures = lines();
  EXPECT_GE(figures.size(), 20U);
  EXPECT_TRUE(std::ranges::any_of(figures, [](const Json& one) { return one.at("estimated_s") > 0.0; }));
}

TEST_F(FiguresCommand, WritesPointsPicturesAndThePage) {
  ASSERT_EQ(run({"figures", "wave_quantization", "diagrams", "--for", "a100", "--as-printed", "--against", "cublaslt"}), 0) << errors_;
  EXPECT_NE(errors_.find("Without the curve of cublaslt: it is measured"), std::string::npos) << errors_;
  EXPECT_NE(output_.find("tiles at N = 1544: 117"), std::string::npos) << output_;
  EXPECT_NE(output_.find("of the tail wave at N = 1544 used: 8.33 %"), std::string::npos) << output_;
  const fs::path out = in_folder("runs") / "figures-a100-as-printed";
  for (const char* name : {"wave_quantization.jsonl", "wave_quantization.csv", "wave_quantization.svg", "waves_here.svg", "figures.html"}) {
    EXPECT_TRUE(fs::exists(out / name)) << name;
  }
  const std::string page = file_text(out / "figures.html");
  EXPECT_NE(page.find("tilewave figures wave_quantization --for a100 --as-printed"), std::string::npos);
  EXPECT_NE(page.find("Without the curve of cublaslt"), std::string::npos);
}

TEST_F(FiguresCommand, PointsAndEffectsAreJsonLines) {
  ASSERT_EQ(run({"figures", "vocabulary", "--for", "h200", "--json", "--out", "f"}), 0) << errors_;
  const std::vector<Json> all = lines();
  EXPECT_EQ(all.front().at("kind"), "figure");
  EXPECT_EQ(all.front().at("device"), "NVIDIA H200");
  EXPECT_EQ(std::ranges::count_if(all, [](const Json& one) { return one.at("kind") == "point"; }), 18);
  const auto effect = std::ranges::find_if(all, [](const Json& one) {
    return one.at("kind") == "effect" && one.at("what") == "FLOP/s at 33712 over those at 33708, wgrad, strict";
  });
  ASSERT_NE(effect, all.end());
  EXPECT_GT(effect->at("predicted").get<double>(), 2.0);
  EXPECT_TRUE(effect->at("measured").is_null());
}

TEST_F(FiguresCommand, MeasuresToysOnACpuAndContinues) {
  const std::vector<std::string> words = {"figures", "batch_of_8", "--device", "cpu", "--threads", "1", "--rounds", "1", "--out", "f"};
  ASSERT_EQ(run(words), 0) << errors_;
  EXPECT_NE(errors_.find("Measured on a CPU at toy sizes"), std::string::npos) << errors_;
  const std::string first = file_text(in_folder("f") / "batch_of_8.jsonl");
  EXPECT_EQ(first.find("\"measured_us\": null"), std::string::npos) << "every point was measured";
  ASSERT_EQ(run(words), 0) << errors_;
  EXPECT_EQ(file_text(in_folder("f") / "batch_of_8.jsonl"), first) << "no point was measured again";
  // One that is not there is measured, and the others stay.
  write_text(in_folder("f") / "batch_of_8.jsonl", first.substr(0, first.rfind('\n', first.size() - 2) + 1));
  ASSERT_EQ(run(words), 0) << errors_;
  const std::string third = file_text(in_folder("f") / "batch_of_8.jsonl");
  EXPECT_NE(third, first);
  EXPECT_TRUE(third.starts_with(first.substr(0, first.rfind('\n', first.size() - 2) + 1)));
  // Another device's, or other sizes, would overwrite what was measured.
  EXPECT_EQ(run({"figures", "batch_of_8", "--for", "h200", "--out", "f"}), 2);
  EXPECT_NE(errors_.find("holds what was measured on"), std::string::npos) << errors_;
  EXPECT_EQ(file_text(in_folder("f") / "batch_of_8.jsonl"), third);
}

TEST_F(FiguresCommand, StopsWhenAskedAndKeepsWhatItHas) {
  Process process(folder_.path(), {"figures", "tile_quantization", "--device", "cpu", "--threads", "1", "--rounds", "200", "--out", "f"});
  for (int i = 0; i < 600 && !fs::exists(in_folder("f") / "tile_quantization.jsonl"); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  process.send(SIGINT);
  EXPECT_EQ(process.wait(), 128 + SIGINT) << process.errors();
  EXPECT_NE(process.errors().find("the same command goes on from there"), std::string::npos) << process.errors();
  EXPECT_NE(file_text(in_folder("f") / "tile_quantization.jsonl").find("\"rounds\": 200"), std::string::npos);
}

TEST_F(FiguresCommand, AFigureOfOnesOwnIsSwept) {
  ASSERT_EQ(run({"figures", "--gemm", "2304x1528:1552:8x4096", "--for", "a100", "--choice", "tensor_core_persistent/256x128", "--split",
                 "1", "--json", "--out", "f"}),
            0)
      << errors_;
  std::vector<std::int64_t> tiles;
  for (const Json& one : lines()) {
    if (one.at("kind") == "point") tiles.push_back(one.at("tiles"));
  }
  EXPECT_EQ(tiles, (std::vector<std::int64_t>{108, 108, 117, 117}));
  ASSERT_EQ(run({"figures", "--layer", "4096<-1024@512:1024:512", "--phase", "all", "--pitch", "aligned", "--for", "h200", "--json",
                 "--out", "g"}),
            0)
      << errors_;
  EXPECT_EQ(lines().size(), 1U + 6U + 3U);
}

TEST_F(FiguresCommand, TheChecklistAnswersForARecipe) {
  write_text(in_folder("r.toml"),
             "[model]\nd_model = 1024\nd_ff = 4096\nheads = 16\nvocabulary = 33708\n[data]\nkind = \"synthetic\"\n[batch]\n"
             "source_tokens = 2048\ntarget_tokens = 2048\n[run]\nprecision = \"bf16\"\n[guidelines]\nrow_pitch = \"packed\"\n");
  ASSERT_EQ(run({"figures", "summary", "--for", "h200", "--recipe", "r.toml", "--out", "f"}), 0) << errors_;
  EXPECT_NE(output_.find("yes, 100.0 %: do GEMMs run on Tensor Cores?"), std::string::npos) << output_;
  EXPECT_NE(output_.find("not decoder.projection"), std::string::npos) << output_;
  const std::string answers = file_text(in_folder("f") / "summary.jsonl");
  EXPECT_NE(answers.find("\"answer\": \"no\""), std::string::npos) << answers;
  // Without one there is no point at all.
  EXPECT_EQ(run({"figures", "summary", "--for", "h200", "--out", "g"}), 1);
  EXPECT_NE(output_.find("--recipe FILE"), std::string::npos) << output_;
}

TEST_F(FiguresCommand, PlanDrawsTiles) {
  ASSERT_EQ(run({"plan", "--gemm", "256x257x64", "--tile", "128x128", "--for", "v100", "--draw", "t.svg"}), 0) << errors_;
  const std::string svg = file_text(in_folder("t.svg"));
  EXPECT_NE(svg.find("6 tiles, 66.9 % useful; 160 at a time: 0.04 waves"), std::string::npos) << svg;
}

}  // namespace
}  // namespace tilewave
