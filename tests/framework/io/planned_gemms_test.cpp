// Plans come back from their file as they were, where the device still has them.
#include "framework/io/planned_gemms.h"

#include <algorithm>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <set>

#include "framework/measure/calibration.h"
#include "kernels/core/error.h"
#include "tests/kernels/gemm/gpus.h"
#include "tests/memory_folder.h"
#include "tests/test_environment.h"

namespace tilewave {
namespace {

class PlannedGemmsFile : public testing::Test {
 protected:
  MemoryFolder folder_;
  std::filesystem::path path_ = folder_ / "plans.jsonl";
};

PlannedGemms all_plans() {
  PlannedGemms gemms = {.device = "NVIDIA H200", .driver = "580.1", .gemms = {}};
  std::vector<GemmProblem> problems = calibration_problems();
  problems.push_back(problems.front());
  problems.back().epilogue.output_sums = true;
  for (const GemmProblem& problem : problems) {
    for (const GemmPlan& plan : gemm_candidates(problem, h200()))
      gemms.gemms.push_back({.problem = problem, .plan = plan, .seconds = 3e-6});
  }
  return gemms;
}

TEST_F(PlannedGemmsFile, ComeBackAsTheyWere) {
  const PlannedGemms written = all_plans();
  write_planned_gemms(path_, written);
  const ReadGemms read = read_planned_gemms(path_, h200());
  EXPECT_EQ(read.left_out, 0u);
  EXPECT_EQ(read.gemms.device, "NVIDIA H200");
  EXPECT_EQ(read.gemms.driver, "580.1");
  ASSERT_EQ(read.gemms.gemms.size(), written.gemms.size());
  for (std::size_t i = 0; i < written.gemms.size(); ++i) {
    EXPECT_EQ(read.gemms.gemms[i].problem, written.gemms[i].problem) << i;
    EXPECT_EQ(read.gemms.gemms[i].plan, written.gemms[i].plan) << i;
    EXPECT_DOUBLE_EQ(read.gemms.gemms[i].seconds, 3e-6);
  }
  for (const char* kernel : {"persistent/deferred", "gemv_dot_mma", "gemv_axpy_mma"}) {
    EXPECT_TRUE(std::ranges::any_of(read.gemms.gemms, [&](const PlannedGemm& one) { return name_of(one.plan.composition) == kernel; }))
        << "no problem has plans of " << kernel;
  }
}

// What version 0.1 wrote of an H200: a row's name said all of a kernel's composition.
TEST_F(PlannedGemmsFile, OfRowsAreUnderstood) {
  const std::filesystem::path former = std::filesystem::path(test_environment().data) / "fixtures/plans/of_rows.jsonl";
  std::ifstream in(former);
  std::string line;
  std::getline(in, line);
  std::set<std::string> rows, left_out;
  const std::string header = line;
  while (std::getline(in, line)) {
    std::ofstream(path_) << header << '\n' << line << '\n';
    const nlohmann::json said = nlohmann::json::parse(line);
    const auto row = said.at("row").get<std::string>();
    rows.insert(row);
    const ReadGemms read = read_planned_gemms(path_, h200());
    if (read.left_out > 0) {
      left_out.insert(row);
      continue;
    }
    ASSERT_EQ(read.gemms.gemms.size(), 1U);
    const GemmPlan& plan = read.gemms.gemms.front().plan;
    EXPECT_EQ(name_of(plan.composition), present_name(row));
    EXPECT_EQ(plan.tile, (Tile{.m = said.at("tile_m").get<std::int64_t>(), .n = said.at("tile_n").get<std::int64_t>()})) << row;
    EXPECT_EQ(plan.split, said.at("split").get<int>()) << row;
  }
  EXPECT_GE(rows.size(), 20U);
  // They took rows that start on 16 bytes too.
  EXPECT_EQ(left_out, (std::set<std::string>{"persistent_residues", "realigned_fragments"}));
}

TEST_F(PlannedGemmsFile, WhatADeviceCannotRunIsLeftOut) {
  const PlannedGemms written = all_plans();
  write_planned_gemms(path_, written);
  const ReadGemms read = read_planned_gemms(path_, a100());
  EXPECT_GT(read.left_out, 0u);
  EXPECT_EQ(read.left_out + read.gemms.gemms.size(), written.gemms.size());
  for (const PlannedGemm& gemm : read.gemms.gemms) EXPECT_EQ(name_of(gemm.plan).find("wgmma"), std::string_view::npos);
}

TEST_F(PlannedGemmsFile, ASpoiltFileIsRefusedWithItsLine) {
  PlannedGemms one = all_plans();
  one.gemms.resize(1);
  write_planned_gemms(path_, one);
  std::ifstream in(path_);
  std::string header, line;
  std::getline(in, header);
  std::getline(in, line);
  const auto said = [&](const std::string& text) {
    std::ofstream(path_) << text;
    try {
      read_planned_gemms(path_, h200());
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const auto spoilt = [&](const std::string& from, const std::string& to) {
    std::string text = line;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return said(header + "\n" + text.replace(at, from.size(), to) + "\n");
  };
  EXPECT_EQ(said(header + "\n" + line + "\n"), "no error");
  EXPECT_NE(said("").find("is empty"), std::string::npos);
  EXPECT_NE(said("{\"format\": 3}\n").find("line 1: its format is another"), std::string::npos);
  EXPECT_NE(said(header + "\n" + line.substr(0, 30)).find("line 2: "), std::string::npos);
  EXPECT_NE(spoilt("\"role\": \"forward\"", "\"role\": \"sideward\"").find("\"role\": \"sideward\" is unknown"), std::string::npos);
  EXPECT_NE(spoilt("\"m\": 2048", "\"m\": 0").find("M, N and K must be at least 1"), std::string::npos);
  EXPECT_EQ(spoilt("\"output_sums\": false, ", ""), "no error") << "lines of before there were any";
  EXPECT_EQ(spoilt("\"kernel\": \"", "\"kernel\": \"un"), "no error") << "a kernel that is not there is left out, not refused";
}

}  // namespace
}  // namespace tilewave
