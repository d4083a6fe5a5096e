// tilewave ablate: its tables, files and exit codes.
#include <filesystem>
#include <gtest/gtest.h>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <sys/resource.h>

#include "kernels/core/device.h"
#include "tests/app/process.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class AblateCommand : public testing::Test {
 protected:
  int run(
      std::vector<std::string> words, const std::function<void()>& prepare = [] {}) {
    const std::vector<std::string> all = {"ablate", "recipe.toml", "--device", device_, "--threads", "2", "--rounds", "2", "--steps", "2"};
    words.insert(words.begin(), all.begin(), all.end());
    if (std::ranges::find(words, "--json") == words.end() && wide_) words.emplace_back("--wide");
    Process process(folder_.path(), words, prepare);
    const int code = process.wait();
    output_ = process.output();
    errors_ = process.errors();
    return code;
  }
  Json ablation(const fs::path& folder) { return Json::parse(file_text(folder_.path() / folder / "ablation.json")); }

  void SetUp() override { write_recipe(); }
  void write_recipe() const {
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
  std::string device_ = "cpu", output_, errors_;
  bool wide_ = true;  // prose in lines as long as they come
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
  for (const std::string& text : {output_, page}) {
    EXPECT_NE(text.find("redicted gains are of GEMMs alone, as a CPU's bandwidth is not known"), std::string::npos) << text;
  }
  EXPECT_EQ(page.find("http"), std::string::npos) << "the page needs nothing beside it";
  ASSERT_EQ(run({}), 0);
  EXPECT_TRUE(fs::exists(folder_.path() / "runs/recipe-ablation-2/ablation.json"));
}

// A step's losses stand in one line, setting by setting; what does not fit into it, in lines below.
TEST_F(AblateCommand, LossesStandBesideEachOther) {
  wide_ = false;
  ASSERT_EQ(run({"--switch", "pad_vocabulary_to=1,8,48,70,100"}), 0) << errors_;
  const auto words_of = [&](const std::string& start, std::size_t from) {
    const std::size_t at = output_.find(start, from);
    std::istringstream line(at == std::string::npos ? "" : output_.substr(at + 1, output_.find('\n', at + 1) - at - 1));
    return std::vector<std::string>(std::istream_iterator<std::string>(line), {});
  };
  const std::size_t losses = output_.find("\ntraining loss and gradient norm\n"), more = output_.find("\nstep  pad_vocabulary_to=70");
  ASSERT_NE(losses, std::string::npos) << output_;
  ASSERT_NE(more, std::string::npos) << output_;
  EXPECT_EQ(words_of("\nstep", losses),
            (std::vector<std::string>{"step", "pad_vocabulary_to=1", "pad_vocabulary_to=8", "pad_vocabulary_to=48"}))
      << output_;
  EXPECT_EQ(words_of("\nstep", more), (std::vector<std::string>{"step", "pad_vocabulary_to=70", "pad_vocabulary_to=100"})) << output_;
  const std::vector<std::string> first = words_of("\n   1  ", losses), second = words_of("\n   2  ", losses);
  ASSERT_EQ(first.size(), 7U) << output_;
  ASSERT_EQ(second.size(), 7U) << output_;
  EXPECT_NE(first[1], second[1]);
  for (std::size_t pair = 1; pair < 3; ++pair) {
    for (std::size_t i = 1; i <= 2; ++i) EXPECT_EQ(first[2 * pair + i], first[i]) << output_;
  }
  const std::vector<std::string> below = words_of("\n   1  ", more);
  ASSERT_EQ(below.size(), 5U) << output_;
  EXPECT_EQ(below[1], first[1]);
}

// It begins with the answer and ends with a sentence for each setting that is compared.
TEST_F(AblateCommand, EndsWithASentenceForEachSetting) {
  ASSERT_EQ(run({"--switch", "pad_vocabulary_to=1,8,48", "--set", "optimizer.label_smoothing=0.1", "--set", "model.dropout=0.1"}), 0)
      << errors_;
  EXPECT_TRUE(output_.starts_with("recipe on ")) << output_;
  EXPECT_NE(output_.substr(0, output_.find('\n')).find("; every loss is its baseline's"), std::string::npos) << output_;
  EXPECT_NE(output_.find("\ntraining loss (smoothed, with dropout) and gradient norm\n"), std::string::npos) << output_;
  std::vector<std::string> lines;
  std::istringstream stream(output_);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  ASSERT_GE(lines.size(), 3U);
  for (const auto& [from_the_end, name] : {std::pair<std::size_t, std::string>{2, "pad_vocabulary_to=8"}, {1, "pad_vocabulary_to=48"}}) {
    const std::string& line = lines[lines.size() - from_the_end];
    EXPECT_TRUE(line.starts_with(name + ": ")) << line;
    EXPECT_NE(line.find(" over pad_vocabulary_to=1, within noise as far as 2 rounds can tell ("), std::string::npos) << line;
  }
  const Json variant = ablation("runs/recipe-ablation")["variants"][1];
  EXPECT_EQ(variant["rounds"], 2);
  EXPECT_EQ(variant["measured_gain_confidence_fraction"], 0.5);
  EXPECT_LE(variant["measured_gain_low_fraction"], variant["measured_gain_fraction"]);
  EXPECT_GE(variant["measured_gain_high_fraction"], variant["measured_gain_fraction"]);
  const std::string page = file_text(folder_.path() / "runs/recipe-ablation/ablation.html");
  EXPECT_NE(page.find("<li>pad_vocabulary_to=8: "), std::string::npos) << page;
}

TEST_F(AblateCommand, ALossThatDivergesIsNoLossThatHolds) {
  EXPECT_EQ(run({"--set", "optimizer.learning_rate=1e38", "--set", "schedule.warmup_steps=1", "--set", "run.precision=fp32"}), 1);
  EXPECT_EQ(ablation("runs/recipe-ablation")["variants"][1]["same_loss"]["verdict"].get<std::string>().find("equal"), std::string::npos);
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

// Terabytes, that no machine has to give.
TEST_F(AblateCommand, WhatDoesNotFitIsASentenceAndTheOthersRun) {
  EXPECT_EQ(run({"--switch", "batch.source_tokens+batch.target_tokens=50,16777216,56", "--set", "model.d_ff=8192", "--set",
                 "run.precision=fp64"}),
            1);
  EXPECT_NE(errors_.find("batch.target_tokens=16777216: recipe needs "), std::string::npos) << errors_;
  EXPECT_NE(errors_.find(" --set batch.target_tokens="), std::string::npos) << errors_;
  EXPECT_NE(output_.find("batch.target_tokens=16777216 did not run: recipe needs "), std::string::npos) << output_;
  const Json variants = ablation("runs/recipe-ablation")["variants"];
  EXPECT_TRUE(variants[0]["ran"].get<bool>());
  EXPECT_FALSE(variants[1]["ran"].get<bool>());
  ASSERT_TRUE(variants[2]["ran"].get<bool>());
  EXPECT_NE(variants[2]["same_loss"]["verdict"], "DIFFERS");
}

TEST_F(AblateCommand, WhereNothingCanBeWrittenNoEmptyFolderIsLeft) {
  const auto small_files = [] {
    constexpr rlimit kLimit{.rlim_cur = 4096, .rlim_max = 4096};
    ::setrlimit(RLIMIT_FSIZE, &kLimit);
  };
  fs::create_directory(folder_.path() / "mine");
  EXPECT_EQ(run({}, small_files), 1);
  EXPECT_NE(errors_.find("cannot write: File too large"), std::string::npos) << errors_;
  EXPECT_EQ(run({"--out", "fresh"}, small_files), 1);
  EXPECT_EQ(run({"--out", "mine"}, small_files), 1);
  EXPECT_TRUE(fs::is_empty(folder_.path() / "runs"));
  EXPECT_FALSE(fs::exists(folder_.path() / "fresh"));
  EXPECT_TRUE(fs::exists(folder_.path() / "mine")) << "it was there before";
}

TEST_F(AblateCommand, ACpuIsNotCalibrated) {
  EXPECT_EQ(run({"--calibrate"}), 2);
  EXPECT_NE(errors_.find("--calibrate fits the cost model of a GPU, and "), std::string::npos) << errors_;
  EXPECT_FALSE(fs::exists(folder_.path() / "runs"));
}

class GpuAblateCommand : public AblateCommand {
 protected:
  void SetUp() override {
    const CudaDevices devices = probe_cuda();
    if (devices.usable.empty()) GTEST_SKIP() << devices.refused;
    device_ = "cuda";
    write_recipe();
  }
};

// Of this run alone: nothing is kept for another.
TEST_F(GpuAblateCommand, CalibratesInTheSameRun) {
  const fs::path cache = folder_.path() / "cache";
  const auto own_cache = [&] { ::setenv("XDG_CACHE_HOME", cache.c_str(), 1); };
  ASSERT_EQ(run({"--calibrate", "--out", "calibrated", "--set", "run.precision=bf16"}, own_cache), 0) << errors_;
  EXPECT_EQ(ablation("calibrated")["time_model"], "calibrated here");
  EXPECT_NE(errors_.find("launches that are no GEMMs"), std::string::npos) << errors_;
  ASSERT_EQ(run({"--out", "plain", "--set", "run.precision=bf16"}, own_cache), 0) << errors_;
  EXPECT_NE(ablation("plain")["time_model"], "calibrated here");
}

TEST_F(AblateCommand, AnUnknownKeyEndsItAtOnce) {
  EXPECT_EQ(run({"--switch", "pad_vocabulary=1,8"}), 2);
  EXPECT_NE(errors_.find("did you mean guidelines.pad_vocabulary_to?"), std::string::npos) << errors_;
  EXPECT_FALSE(fs::exists(folder_.path() / "runs"));
}

// What a guideline made of each variant, with its waves and reason, in the output, on the page and in the files; GEMMs' own gain beside
// the step's.
TEST_F(AblateCommand, SaysWhatTheGuidelinesMadeOfIt) {
  const std::vector<std::string> settings = {"guidelines.wave_tile=64x8", "guidelines.wave_limit=0.5", "guidelines.row_pitch=packed",
                                             "batch.source_tokens=50"};
  std::vector<std::string> words = {"--switch", "wave_free_batch=off,up"};
  for (const std::string& setting : settings) words.insert(words.end(), {"--set", setting});
  ASSERT_EQ(run(words), 0) << errors_;
  for (const char* part : {"\nwhat the guidelines made of it\n  wave_free_batch: source and target rows 50 ", " waves; ",
                           " less time per real token", "\n    in wave_free_batch=up\n", "  GEMMs'\n"}) {
    EXPECT_NE(output_.find(part), std::string::npos) << part << "\n" << output_;
  }
  const fs::path folder = "runs/recipe-ablation";
  const Json json = ablation(folder), &waves = json["variants"][1];
  const Json adjustment = waves["adjustments"].back();
  EXPECT_EQ(adjustment["rule"], "wave_free_batch");
  const auto gemms_us = [](const Json& variant) {
    double sum = 0.0;
    for (const Json& gemm : variant["gemms"]) sum += gemm["time_us"].get<double>();
    return sum;
  };
  const double more_tokens = waves["target_tokens"].get<double>() / json["variants"][0]["target_tokens"].get<double>();
  EXPECT_NEAR(waves["measured_gemm_gain_fraction"].get<double>(), more_tokens * gemms_us(json["variants"][0]) / gemms_us(waves) - 1.0,
              1e-9);
  EXPECT_TRUE(waves["predicted_gemm_gain_fraction"].is_number());
  std::string page = file_text(folder_.path() / folder / "ablation.html");
  const std::string_view may_break = "<wbr>";
  for (std::size_t at = 0; (at = page.find(may_break, at)) != std::string::npos;) page.erase(at, may_break.size());
  for (const std::string& part :
       {std::string("<h2>What the guidelines made of it</h2>"), adjustment["why"].get<std::string>(), std::string(">GEMMs' gain</th>")}) {
    EXPECT_NE(page.find(part), std::string::npos) << part;
  }
  EXPECT_NE(file_text(folder_.path() / folder / "ablation.csv").find(",measured_gemm_gain_fraction,same_loss\n"), std::string::npos);
}

// Nobody asked for whole waves: where none fit, that is an answer and no error.
TEST_F(AblateCommand, WithoutSwitchesAGuidelineMayHaveNoAnswer) {
  const std::vector<std::string> narrow = {"--set", "ablation.switches=''", "--set", "guidelines.wave_limit=0.01"};
  ASSERT_EQ(run(narrow), 0) << output_ << errors_;
  EXPECT_NE(output_.find("wave_free_batch: target rows 50 stay, "), std::string::npos) << output_;
  EXPECT_NE(output_.find("; no number within 1.0 % fills whole waves"), std::string::npos) << output_;
  std::vector<std::string> asked = narrow;
  asked.insert(asked.end(), {"--switch", "wave_free_batch=off,nearest"});
  EXPECT_EQ(run(asked), 2);
  EXPECT_NE(errors_.find("no number fills whole waves"), std::string::npos) << errors_;
}

}  // namespace
}  // namespace tilewave
