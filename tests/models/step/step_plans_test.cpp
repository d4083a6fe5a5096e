// gemm.choice = "measure": plans that were measured once are remembered, kept by the run and launched again when it is resumed; on a
// CPU the numbers are the model's to the bit.
#include "models/step/step_plans.h"

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <set>

#include "framework/io/checkpoint.h"
#include "framework/io/planned_gemms.h"
#include "framework/measure/measured_plans.h"
#include "kernels/core/error.h"
#include "models/training/trainer.h"
#include "tests/kernels/gpu.h"
#include "tests/memory_folder.h"
#include "tests/models/training/small_runs.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;

std::string weights_of(const fs::path& folder) {
  std::ifstream file(find_latest_valid(folder).newest->weights(), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class StepPlans : public testing::Test {
 protected:
  void SetUp() override {
    if (const char* before = std::getenv("XDG_CACHE_HOME")) before_ = before;
    setenv("XDG_CACHE_HOME", (folder_ / "cache").c_str(), 1);
  }
  void TearDown() override { before_.empty() ? unsetenv("XDG_CACHE_HOME") : setenv("XDG_CACHE_HOME", before_.c_str(), 1); }

  GemmPlans measured(const DeviceInfo& device) {
    notes_.clear();
    return measured_plans(problems_,
                          {.queue = make_cpu_queue(2), .device = device, .noted = [&](const std::string& note) { notes_ += note + "\n"; }});
  }
  fs::path cache_file() const {
    for (const auto& entry : fs::directory_iterator(folder_ / "cache" / "tilewave")) return entry.path();
    return {};
  }
  bool said(const std::string& text) const { return notes_.find(text) != std::string::npos; }

  TrainingResult run(const fs::path& folder, const std::vector<std::string>& overrides, RunStart start = RunStart::fresh,
                     int stop_after = 0) {
    int taken = 0;
    notes_.clear();
    return train({.recipe = small_recipe(overrides),
                  .run = {.recipe = "small", .folder = folder, .start = start},
                  .queue = make_cpu_queue(2),
                  .device = probe_cpu(2),
                  .stop_signal = [&] { return ++taken == stop_after ? SIGTERM : 0; }},
                 {.noted = [&](const std::string& note) { notes_ += note + "\n"; }});
  }

  MemoryFolder folder_;
  std::string before_, notes_;
  std::set<GemmProblem> problems_ = {
      {.m = 64, .n = 96, .k = 32, .a_pitch = 32, .b_pitch = 32, .d_pitch = 64, .a_alignment = 128, .b_alignment = 128, .d_alignment = 128},
      {.m = 300, .n = 200, .k = 70, .a_pitch = 70, .b_pitch = 70, .d_pitch = 300, .a_alignment = 8, .b_alignment = 8, .d_alignment = 16}};
};

TEST_F(StepPlans, AreTakenEvenWhereTheyCannotBeKept) {
  std::ofstream(folder_ / "cache") << "no folder";
  EXPECT_EQ(measured(probe_cpu(2)).size(), 2u);
  EXPECT_TRUE(said("what was measured is not kept for other runs: ")) << notes_;
}

TEST_F(StepPlans, AreMeasuredOnceAndThenRemembered) {
  const GemmPlans first = measured(probe_cpu(2));
  ASSERT_EQ(first.size(), 2u);
  EXPECT_TRUE(said("measured 2 GEMMs")) << notes_;
  for (const auto& [problem, plan] : first) {
    EXPECT_EQ(name_of(plan.composition), name_of(choose(problem, probe_cpu(2)).composition)) << "on a CPU another row may round otherwise";
    EXPECT_NE(plan.reason.find("the fastest of"), std::string::npos) << plan.reason;
  }
  const GemmPlans again = measured(probe_cpu(2));
  EXPECT_EQ(notes_, "");
  EXPECT_EQ(again, first);
  EXPECT_NE(again.begin()->second.reason.find("measured before"), std::string::npos);

  problems_.insert(
      {.m = 8, .n = 8, .k = 8, .a_pitch = 8, .b_pitch = 8, .d_pitch = 8, .a_alignment = 32, .b_alignment = 32, .d_alignment = 32});
  EXPECT_EQ(measured(probe_cpu(2)).size(), 3u);
  EXPECT_TRUE(said("measured 1 GEMMs") && said("2 were known")) << notes_;
}

TEST_F(StepPlans, AreMeasuredAnewWhereTheCacheIsNotThisDevicesOrCannotBeRead) {
  measured(probe_cpu(2));
  DeviceInfo updated = probe_cpu(2);
  updated.driver = "another";
  measured(updated);
  EXPECT_TRUE(said("its GEMMs are measured anew") && said("measured 2 GEMMs")) << notes_;
  measured(updated);
  EXPECT_EQ(notes_, "");
  PlannedGemms among_others = read_planned_gemms(cache_file(), updated).gemms;
  ASSERT_NE(among_others.catalog, 0u);
  ++among_others.catalog;
  write_planned_gemms(cache_file(), among_others);
  measured(updated);
  EXPECT_TRUE(said("among other kernels or tiles; its GEMMs are measured anew") && said("measured 2 GEMMs")) << notes_;
  std::ofstream(cache_file()) << "no plans\n";
  measured(updated);
  EXPECT_TRUE(said("line 1: ") && said("measured 2 GEMMs")) << notes_;
  measured(updated);
  EXPECT_EQ(notes_, "") << "the file was mended";
}

TEST_F(StepPlans, ARunKeepsThemAndAResumedRunLaunchesThemAgain) {
  const std::vector<std::string> measure = {"gemm.choice=measure"};
  run(folder_ / "model", {});
  run(folder_ / "measured", measure, RunStart::fresh, 4);
  EXPECT_TRUE(said("measured ")) << notes_;
  const ReadGemms kept = read_planned_gemms(folder_ / "measured" / kPlansFile, probe_cpu(2));
  EXPECT_EQ(kept.left_out, 0u);
  std::set<GemmProblem> posed;
  for (const TraceEntry& entry : trace_step(resolve(small_recipe(measure)), probe_cpu(2)).trace.entries) {
    if (entry.gemm) posed.insert(*entry.gemm);
  }
  EXPECT_EQ(kept.gemms.gemms.size(), posed.size()) << "every GEMM of the step, once";

  // A resumed run takes its plans from its folder: the cache may say what it likes.
  fs::remove_all(folder_ / "cache");
  run(folder_ / "measured", measure, RunStart::resume);
  EXPECT_FALSE(said("measured ")) << notes_;
  EXPECT_EQ(weights_of(folder_ / "measured"), weights_of(folder_ / "model"));
}

// On a GPU: with either engine, captured graphs and all, a resumed run has the bits of one that was not stopped.
class GpuStepPlans : public testing_support::GpuTest {};

TEST_F(GpuStepPlans, AResumedRunHasTheBitsOfOneThatWasNot) {
  const MemoryFolder folder;
  setenv("XDG_CACHE_HOME", (folder / "cache").c_str(), 1);
  for (const std::string engine : {"in_house", "cublaslt"}) {
    std::string notes;
    const auto run = [&](const std::string& name, RunStart start, int stop_after) {
      int taken = 0;
      notes.clear();
      train({.recipe = small_recipe({"gemm.choice=measure", "gemm.engine=" + engine, "run.precision=bf16"}),
             .run = {.recipe = "small", .folder = folder / (engine + name), .start = start},
             .queue = queue_,
             .device = device_,
             .stop_signal = [&] { return ++taken == stop_after ? SIGTERM : 0; }},
            {.noted = [&](const std::string& note) { notes += note + "\n"; }});
    };
    run("whole", RunStart::fresh, 0);
    EXPECT_NE(notes.find("measured "), std::string::npos) << notes;
    run("stopped", RunStart::fresh, 4);
    EXPECT_EQ(notes.find("measured "), std::string::npos) << "they are remembered: " << notes;
    std::filesystem::remove_all(folder / "cache");
    run("stopped", RunStart::resume, 0);
    EXPECT_EQ(notes.find("measured "), std::string::npos) << "they are the run's: " << notes;
    EXPECT_EQ(weights_of(folder / (engine + "stopped")), weights_of(folder / (engine + "whole"))) << engine;
  }
  unsetenv("XDG_CACHE_HOME");
}

}  // namespace
}  // namespace tilewave
