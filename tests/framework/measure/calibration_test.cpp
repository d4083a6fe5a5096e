// The fit finds constants again that made the times, outliers and noise or not; a stored calibration is read where it is this
// device's, and said where it cannot be used.
#include "framework/measure/calibration.h"

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <random>

#include "framework/measure/gemm_scratch.h"
#include "framework/measure/least_squares.h"
#include "kernels/gemm/catalog.h"
#include "tests/kernels/gemm/gpus.h"
#include "tests/memory_folder.h"

namespace tilewave {
namespace {

TEST(LeastSquares, FindsAnExponentialDespiteAnOutlier) {
  // y = a exp(-b x), one of twelve values ten times too large.
  const auto value = [](double a, double b, double x) { return a * std::exp(-b * x); };
  const auto residuals = [&](std::span<const double> p) {
    std::vector<double> result;
    for (int x = 0; x < 12; ++x) result.push_back(value(p[0], p[1], 0.2 * x) - (x == 5 ? 10.0 : 1.0) * value(3.0, 0.7, 0.2 * x));
    return result;
  };
  const std::vector<double> robust = fit({.residuals = residuals, .start = {1.0, 1.0}, .huber = 1e-4});
  EXPECT_NEAR(robust[0], 3.0, 1e-3);
  EXPECT_NEAR(robust[1], 0.7, 1e-3);
  const std::vector<double> plain = fit({.residuals = residuals, .start = {1.0, 1.0}, .huber = 1e9});
  EXPECT_GT(std::abs(plain[0] - 3.0), 0.5) << "the outlier does not matter, so this test shows nothing";
}

TEST(LeastSquares, WhatNothingTellsOfStaysWhereItWas) {
  const auto residuals = [](std::span<const double> p) { return std::vector<double>{p[0] - 2.0}; };
  const std::vector<double> end = fit({.residuals = residuals, .start = {0.0, 5.0}, .huber = 10.0, .pull = 1e-3});
  EXPECT_NEAR(end[0], 2.0, 1e-4);
  EXPECT_DOUBLE_EQ(end[1], 5.0);
}

// An H200 whose constants are other ones, with 2 % of noise and every fortieth time half as long again.
std::vector<PlannedGemm> invented(const CostModel& truth, std::uint32_t seed) {
  DeviceInfo device = h200();
  device.cost_model = std::make_shared<CostModel>(truth);
  std::mt19937 random(seed);
  std::normal_distribution<double> noise(0.0, 0.02);
  std::vector<PlannedGemm> measured;
  for (const GemmProblem& problem : calibration_problems()) {
    for (const GemmPlan& plan : measurable_plans(problem, h200(), {}, 3.0)) {
      const GemmKernel& row = kernel_of(Backend::cuda, plan);
      const double seconds = row.plan(problem, plan.tile, device, plan.split).predicted_s;
      measured.push_back(
          {.problem = problem, .plan = plan, .seconds = seconds * std::exp(noise(random)) * (random() % 40 == 0 ? 1.5 : 1.0)});
    }
  }
  return measured;
}

// The geometric mean over problems of the time of the plan that the device's model would choose, over the least; times are the truth's.
double choice_by(const DeviceInfo& device, const DeviceInfo& truth, const std::vector<PlannedGemm>& measured) {
  struct Chosen {
    double predicted_s = INFINITY, seconds = 0.0, least_s = INFINITY;
  };
  std::map<GemmProblem, Chosen> of;
  for (const PlannedGemm& gemm : measured) {
    Chosen& chosen = of[gemm.problem];
    const GemmKernel& row = kernel_of(Backend::cuda, gemm.plan);
    const auto by = [&](const DeviceInfo& one) { return row.plan(gemm.problem, gemm.plan.tile, one, gemm.plan.split).predicted_s; };
    const double seconds = by(truth), predicted_s = by(device);
    chosen.least_s = std::min(chosen.least_s, seconds);
    if (predicted_s < chosen.predicted_s) chosen = {predicted_s, seconds, chosen.least_s};
  }
  double sum = 0.0;
  for (const auto& [problem, chosen] : of) sum += std::log(chosen.seconds / chosen.least_s);
  return std::exp(sum / static_cast<double>(of.size()));
}

TEST(Calibration, FindsTheModelThatMadeTheTimes) {
  std::mt19937 random(8);
  CostModel truth;
  for (const CostConstant& constant : cost_constants()) {
    truth.*constant.value *=
        std::exp(std::uniform_real_distribution<double>(-0.35, constant.name.ends_with("_fraction") ? 0.0 : 0.35)(random));
  }
  const std::vector<PlannedGemm> measured = invented(truth, 1);
  DeviceInfo fitted = h200(), real = h200();
  real.cost_model = std::make_shared<CostModel>(truth);
  const Calibration calibration = fit_cost_model(measured, h200());
  EXPECT_GT(calibration.points, 200u);
  EXPECT_GT(calibration.error_before, 0.08) << "the defaults are already right, so there is nothing to find";
  EXPECT_LT(calibration.error_after, 0.03);
  EXPECT_NEAR(std::log(calibration.model.wgmma_fraction / truth.wgmma_fraction), 0.0, 0.05);
  EXPECT_EQ(calibration.model.source, CostModelSource::calibrated);

  // What it chooses, without the noise that misleads the truth as well.
  fitted.cost_model = std::make_shared<CostModel>(calibration.model);
  EXPECT_LT(choice_by(fitted, real, measured), 1.02);
  EXPECT_GT(choice_by(h200(), real, measured), choice_by(fitted, real, measured)) << "the defaults choose as well";

  // On shapes that were not fitted.
  double error = 0.0;
  int count = 0;
  for (const std::int64_t tokens : {2000, 5120, 16384}) {
    GemmProblem problem = calibration_problems().front();
    problem.n = tokens;
    for (const GemmPlan& plan : measurable_plans(problem, real, {}, 1.5)) {
      const GemmKernel& row = kernel_of(Backend::cuda, plan);
      error += std::abs(std::log(row.plan(problem, plan.tile, fitted, plan.split).predicted_s / plan.predicted_s));
      ++count;
    }
  }
  EXPECT_LT(error / count, 0.05);
}

class StoredCalibration : public testing::Test {
 protected:
  void SetUp() override {
    if (const char* before = std::getenv("XDG_CACHE_HOME")) before_ = before;
    setenv("XDG_CACHE_HOME", folder_.path().c_str(), 1);
  }
  void TearDown() override { before_.empty() ? unsetenv("XDG_CACHE_HOME") : setenv("XDG_CACHE_HOME", before_.c_str(), 1); }
  void write(const std::string& text) {
    std::filesystem::create_directories(calibration_path(h200()).parent_path());
    std::ofstream(calibration_path(h200())) << text;
  }

  MemoryFolder folder_;
  std::string before_;
};

TEST_F(StoredCalibration, IsThisDevicesAlone) {
  DeviceInfo device = h200();
  EXPECT_EQ(use_calibration(device), "");
  EXPECT_EQ(device.cost_model, nullptr) << "there is none yet";
  Calibration calibration;
  calibration.model.wgmma_fraction = 0.5;
  calibration.model.operations.adamw_share = 0.6;
  save_calibration(calibration_path(device), calibration, device);
  EXPECT_EQ(calibration_path(device), folder_.path() / "tilewave" / "nvidia-h200.json");
  EXPECT_EQ(use_calibration(device), "");
  EXPECT_DOUBLE_EQ(cost_model_of(device).wgmma_fraction, 0.5);
  EXPECT_DOUBLE_EQ(cost_model_of(device).operations.adamw_share, 0.6);
  EXPECT_EQ(cost_model_of(device).source, CostModelSource::calibrated);

  DeviceInfo updated = h200();
  updated.driver = "999.1";
  const std::string said = use_calibration(updated);
  EXPECT_NE(said.find("under driver 580.1, and this is NVIDIA H200 under 999.1"), std::string::npos) << said;
  EXPECT_EQ(updated.cost_model, nullptr);
}

// Links are kept beside what else was fitted, of which they change nothing; and by themselves.
TEST_F(StoredCalibration, LinksJoinWhatIsStored) {
  DeviceInfo device = h200();
  save_links(calibration_path(device), {.share = 0.7, .hop_s = 3e-6}, device);
  EXPECT_EQ(use_calibration(device), "");
  EXPECT_DOUBLE_EQ(cost_model_of(device).operations.link_share, 0.7);
  EXPECT_DOUBLE_EQ(cost_model_of(device).wgmma_fraction, default_cost_model(device.name).wgmma_fraction);
  EXPECT_EQ(cost_model_of(device).source, default_cost_model(device.name).source) << "GEMMs were not calibrated";
  Calibration calibration{.points = 7, .error_after = 0.25};
  calibration.model.wgmma_fraction = 0.5;
  save_calibration(calibration_path(device), calibration, device);
  DeviceInfo again = h200();
  EXPECT_EQ(use_calibration(again), "");
  EXPECT_DOUBLE_EQ(cost_model_of(again).operations.link_share, 0.7) << "a calibration keeps what links were measured to be";
  EXPECT_EQ(cost_model_of(again).source, CostModelSource::calibrated);
  save_links(calibration_path(again), {.share = 0.6, .hop_s = 4e-6}, again);
  EXPECT_EQ(use_calibration(again), "");
  EXPECT_DOUBLE_EQ(cost_model_of(again).wgmma_fraction, 0.5);
  EXPECT_DOUBLE_EQ(cost_model_of(again).operations.link_share, 0.6);
  EXPECT_DOUBLE_EQ(cost_model_of(again).operations.link_hop_s, 4e-6);
  std::ifstream stored(calibration_path(again));
  const std::string text{std::istreambuf_iterator<char>(stored), {}};
  EXPECT_NE(text.find("\"points\":7"), std::string::npos) << text;
  EXPECT_NE(text.find("\"error_after\":0.25"), std::string::npos) << text;
}

TEST_F(StoredCalibration, WhatCannotBeUsedIsSaid) {
  const auto said = [&](const std::string& text) {
    write(text);
    DeviceInfo device = h200();
    const std::string note = use_calibration(device);
    EXPECT_EQ(device.cost_model, nullptr) << text;
    EXPECT_NE(note.find("the default cost model is used. tilewave bench calibrate makes the file anew."), std::string::npos) << note;
    return note;
  };
  EXPECT_NE(said("no object").find("it cannot be read"), std::string::npos);
  EXPECT_NE(said("{}").find("it cannot be read"), std::string::npos);
  EXPECT_NE(said(R"({"format": "another"})").find("its format is another version's"), std::string::npos);
  Calibration calibration;
  DeviceInfo device = h200();
  calibration.model.fill_cycles = -1.0;
  save_calibration(calibration_path(h200()), calibration, h200());
  EXPECT_NE(use_calibration(device).find("fill_cycles is not a number above 0"), std::string::npos);
  calibration.model.fill_cycles = 1.0;
  calibration.model.operations.launch_s = 0.0;
  save_calibration(calibration_path(h200()), calibration, h200());
  EXPECT_NE(use_calibration(device).find("operation_launch_s is not a number above 0"), std::string::npos);
  EXPECT_EQ(device.cost_model, nullptr);
}

}  // namespace
}  // namespace tilewave
