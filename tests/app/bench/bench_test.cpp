// tilewave bench at a prompt: its objects and its refusals. What it measures is not tested, only that it measures.
#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "kernels/gemm/catalog.h"
#include "tests/shell.h"
#include "tests/test_environment.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;

class BenchCommand : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(test_environment().program)) GTEST_SKIP() << "the program is not at --program";
  }
  static Outcome bench(const std::string& options) {
    return shell(quoted(fs::absolute(test_environment().program).string()) + " bench " + options, "/");
  }
};

TEST_F(BenchCommand, MeasuresTheThreeRolesOfALayer) {
  const Outcome outcome =
      bench("gemm --device cpu --layer '65<-127@33' --rounds 3 --block-ms 1 --settle-ms 0.5 --json --threads 1 2>/dev/null");
  ASSERT_EQ(outcome.status, 0) << outcome.output;
  std::istringstream lines(outcome.output);
  std::vector<std::string> roles;
  nlohmann::json model;
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json object = nlohmann::json::parse(line);
    if (!object.contains("form")) {
      model = object;
      continue;
    }
    roles.push_back(object.at("form"));
    EXPECT_EQ(object.at("m").get<int>() * object.at("n").get<int>() * object.at("k").get<int>(), 65 * 127 * 33);
    for (const char* key : {"time_us", "tflops", "predicted_us", "lower_quartile_us", "upper_quartile_us"})
      EXPECT_GT(object.at(key), 0.0) << key;
    EXPECT_TRUE(object.at("floor_us").is_null()) << "a CPU's bandwidth is not known";
    for (const char* key : {"device", "layer", "dtype", "kernel", "tile"}) EXPECT_FALSE(object.at(key).get<std::string>().empty()) << key;
    EXPECT_EQ(object.at("rounds"), 3);
    EXPECT_EQ(object.at("block_ms"), 1.0);
    EXPECT_EQ(object.at("settle_ms"), 0.5);
  }
  EXPECT_GE(model.at("chosen_time_fraction"), 1.0);
  EXPECT_EQ(roles, (std::vector<std::string>{"forward", "dgrad", "wgrad"}));
}

TEST_F(BenchCommand, ClimbsTheLadderOfRows) {
  const Outcome outcome = bench(
      "gemm --device cpu --ladder --layer '64<-96@40' --form forward --dtype f32 --rounds 1 --block-ms 1 --json --threads 1 2>/dev/null");
  ASSERT_EQ(outcome.status, 0) << outcome.output;
  std::istringstream lines(outcome.output);
  std::vector<std::string> rows;
  int refused = 0;
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json object = nlohmann::json::parse(line);
    rows.push_back(object.at("kernel"));
    if (object.contains("refuses")) {
      ++refused;
      continue;
    }
    EXPECT_GT(object.at("time_us"), 0.0) << line;
  }
  std::vector<std::string> expected;
  for (const GemmKernel* row : gemm_catalog()) {
    if (row->backend == Backend::cpu && name_of(*row) != "naive") expected.emplace_back(name_of(*row));
  }
  EXPECT_EQ(rows, expected);
  EXPECT_GE(refused, 1) << "bf16's row has nothing to multiply";

  const Outcome text =
      bench("gemm --device cpu --ladder --layer '64<-96@40' --form forward --rounds 1 --block-ms 1 --threads 1 2>/dev/null");
  EXPECT_EQ(text.status, 0) << text.output;
  EXPECT_NE(text.output.find("packed_pairs refuses: "), std::string::npos) << text.output;
}

TEST_F(BenchCommand, MeasuresFormsAndPitchesOnACpuToo) {
  for (const std::string pitch : {"packed", "aligned"}) {
    const Outcome outcome = bench("gemm --device cpu --layer '65<-127@33' --form wgrad_bias --pitch " + pitch +
                                  " --block-ms 1 --settle-ms 1 --rounds 1 --threads 1 2>/dev/null");
    ASSERT_EQ(outcome.status, 0) << outcome.output;
    EXPECT_NE(outcome.output.find("wgrad_bias"), std::string::npos) << outcome.output;
    EXPECT_EQ(outcome.output.find(", packed") != std::string::npos, pitch == "packed") << outcome.output;
    EXPECT_NE(outcome.output.find("GFLOP/s"), std::string::npos) << outcome.output;
  }
}

// The answer stands before the table, and what was measured on the way went to the standard error.
TEST_F(BenchCommand, TheAnswerComesFirst) {
  const std::string shape = " --device cpu --threads 1 --rounds 1 --wide ";
  const struct {
    std::string options, answer, table, progress;
  } cases[] = {{"gemm --layer '64<-96@40' --block-ms 1" + shape, " GFLOP/s", "kernel/tile", "forward of 64<-96@40: "},
               {"gemm --ladder --layer '64<-96@40' --form forward --block-ms 1" + shape, ": the fastest is ", "kernel/tile",
                "measuring every kernel on forward"},
               {"op softmax --rows 64 --cols 48" + shape, ": of a copy's rate ", "operation", "softmax 64x48: "},
               {"attention --sequences 3 --heads 2 --sequence 50 --head-size 8" + shape, "attention in fp32 on ", "sequences  heads",
                "attention of 3 sequences of 50: "}};
  for (const auto& one : cases) {
    const TemporaryFolder folder;
    const fs::path told_to = folder.path() / "told";
    const std::string printed = bench(one.options + "2>" + quoted(told_to.string())).output, told = file_text(told_to);
    const std::size_t answer = printed.find(one.answer), table = printed.find(one.table);
    ASSERT_NE(answer, std::string::npos) << printed;
    ASSERT_NE(table, std::string::npos) << printed;
    EXPECT_LT(answer, table) << printed;
    EXPECT_NE(told.find(one.progress), std::string::npos) << told;
  }
}

// Without a peer there is one line a layer: a bias gradient has no second peer to be told from.
TEST_F(BenchCommand, AddsABiasGradientToTheDgradThroughAGelu) {
  const Outcome outcome =
      bench("gemm --device cpu --layer '64<-96@128' --form dgrad_gelu_bias --block-ms 1 --rounds 1 --json --threads 1 2>/dev/null");
  ASSERT_EQ(outcome.status, 0) << outcome.output;
  ASSERT_EQ(std::count(outcome.output.begin(), outcome.output.end(), '\n'), 2) << outcome.output;
  const nlohmann::json object = nlohmann::json::parse(outcome.output.substr(0, outcome.output.find('\n')));
  EXPECT_EQ(object.at("form"), "dgrad_gelu_bias");
  EXPECT_EQ(object.at("m"), 96);
  EXPECT_EQ(object.at("k"), 64);
  const double seconds = 1e-6 * (object.at("time_us").get<double>() + object.at("bias_gradient_us").get<double>());
  EXPECT_NEAR(object.at("tflops"), 2.0 * 96 * 128 * 64 / seconds * 1e-12, 1e-9);
  for (const char* key : {"peer", "peer_form", "peer_absent", "ratio"}) EXPECT_FALSE(object.contains(key)) << key;
}

TEST_F(BenchCommand, MeasuresAStep) {
  const fs::path recipe = fs::absolute(test_environment().data).lexically_normal() / ".." / "recipes" / "tiny.toml";
  const Outcome outcome = bench("step " + quoted(recipe.string()) + " --rounds 1 --json");
  ASSERT_EQ(outcome.status, 0) << outcome.output;
  const nlohmann::json object = nlohmann::json::parse(outcome.output);
  for (const char* key : {"time_us", "target_tokens_per_s", "matrix_flops", "matrix_tflops"}) EXPECT_GT(object.at(key), 0.0) << key;
  const Outcome sentence = bench("step " + quoted(recipe.string()) + " --rounds 1 --device cpu --threads 1 --wide");
  EXPECT_NE(sentence.output.find(" (1 thread): "), std::string::npos) << sentence.output;
  EXPECT_NE(sentence.output.find("FLOP/s in matrix products\n"), std::string::npos) << sentence.output;
}

TEST_F(BenchCommand, MeasuresBothPassesOfAttention) {
  const Outcome outcome =
      bench("attention --sequences 3 --heads 2 --sequence 50 --head-size 8 --causal --dropout 0.1 --rounds 1 --json --device cpu");
  ASSERT_EQ(outcome.status, 0) << outcome.output;
  std::istringstream lines(outcome.output);
  std::vector<std::string> passes;
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json object = nlohmann::json::parse(line);
    passes.push_back(object.at("operation"));
    EXPECT_EQ(object.at("flops").get<int>(), (passes.size() == 1 ? 2 : 5) * 3 * 50 * 50 * 16);
    for (const char* key : {"time_us", "tflops", "lower_quartile_us", "upper_quartile_us"}) EXPECT_GT(object.at(key), 0.0) << key;
  }
  EXPECT_EQ(passes, (std::vector<std::string>{"attention", "attention_backward"}));
}

TEST_F(BenchCommand, MeasuresOperationsBesideACopy) {
  const Outcome outcome = bench("op softmax adamw --rows 64 --cols 48 --rounds 1 --json --device cpu");
  ASSERT_EQ(outcome.status, 0) << outcome.output;
  std::istringstream lines(outcome.output);
  std::vector<std::string> operations;
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json object = nlohmann::json::parse(line);
    operations.push_back(object.at("operation"));
    EXPECT_LE(object.at("bytes"), 64 * 48 * 28) << "of that many elements";
    for (const char* key :
         {"bytes", "time_us", "lower_quartile_us", "upper_quartile_us", "bytes_per_s", "copy_bytes_per_s", "copy_fraction"})
      EXPECT_GT(object.at(key), 0.0) << key;
    EXPECT_NEAR(object.at("floor_us").get<double>() / object.at("time_us").get<double>(), object.at("copy_fraction").get<double>(), 1e-9);
  }
  EXPECT_EQ(operations, (std::vector<std::string>{"softmax", "adamw"}));
}

TEST_F(BenchCommand, ATableThatNobodyCanReadIsNoSuccess) {
  const Outcome outcome = bench("op layer_norm --device cpu --rows 10 --cols 64 --rounds 1 2>&1 >/dev/full");
  EXPECT_EQ(outcome.status, 1) << outcome.output;
  EXPECT_NE(outcome.output.find("could not be written to standard output"), std::string::npos) << outcome.output;
}

TEST_F(BenchCommand, RefusesWhatItCannotMeasure) {
  for (const char* options : {"gemm --layer 65x127", "gemm --layer '65<-127@0'", "gemm --layer '65<-127@33@2'",
                              "gemm --kernel fast --layer '65<-127@33'", "gemm --against mkl", "gemm --against cublas --device cpu",
                              "gemm --suite transformer --pitch aligned", "gemm --ladder --kernel naive",
                              "gemm --ladder --form dgrad_gelu_bias --device cpu", "gemm --dtype f16 --device cpu --layer '65<-127@33'",
                              "gemm --device cpu --layer '65<-127@33' --form dgrad_gelu_bias --kernel dot_products",
                              "gemm --device cpu --layer '65<-127@33' --block-ms nan", "step nowhere.toml", "calibrate --device cpu",
                              "gemm --suite transformer --device cpu", "gemm --suite portable", "op transpose", "op add --precision fp8",
                              "op add --row-pitch wide"}) {
    const Outcome outcome = bench(options);
    EXPECT_EQ(outcome.status, 2) << options << ": " << outcome.output;
    EXPECT_EQ(outcome.output.rfind("tilewave: ", 0), 0U) << options << " prints before it refuses: " << outcome.output;
    EXPECT_EQ(std::count(outcome.output.begin(), outcome.output.end(), '\n'), 1) << options << ": " << outcome.output;
  }
}

TEST_F(BenchCommand, NamesWhatIsUnknownAndTellsItFromWhatIsRefused) {
  const auto expect = [&](const std::string& options, const std::string& part) {
    const Outcome outcome = bench(options);
    EXPECT_NE(outcome.output.find(part), std::string::npos) << options << ": " << outcome.output;
  };
  expect("gemm --kernel packed_tile",
         "--kernel packed_tile: no kernel of the catalog is called so (did you mean packed_tiles?); there are naive, ");
  expect("gemm --kernel nope", "--kernel nope: no kernel of the catalog is called so; there are naive, ");
  expect("gemm --row tensor_core --device cpu", "cannot run as \"tensor_core\": tensor_core: it runs on a GPU, and this is ");
  expect("op softmaxx", "there is no operation called softmaxx (did you mean softmax?); there are layer_norm, ");
}

}  // namespace
}  // namespace tilewave
