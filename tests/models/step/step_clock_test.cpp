#include "models/step/step_clock.h"

#include <algorithm>
#include <cstddef>
#include <gtest/gtest.h>
#include <map>

#include "kernels/core/device_profiles.h"
#include "tests/models/training/small_runs.h"

namespace tilewave {
namespace {

TEST(StepClock, LinksWorkBesideTheQueue) {
  StepClock clock;
  clock.launch(3.0);
  EXPECT_EQ(clock.launch_beside(2.0), 5.0);
  EXPECT_EQ(clock.launch_beside(4.0), 9.0);  // behind the first
  clock.launch(1.0);
  clock.await(5.0);
  EXPECT_EQ(clock.now_s, 5.0);
  EXPECT_EQ(clock.exposed_s, 1.0);
  clock.await(5.0);
  EXPECT_EQ(clock.exposed_s, 1.0);
  clock.launch(6.0);
  clock.await(9.0);
  EXPECT_EQ(clock.now_s, 11.0);
  EXPECT_EQ(clock.exposed_s, 1.0);
  EXPECT_EQ(clock.links_s, 6.0);
  EXPECT_EQ(clock.launch_beside(1.0), 12.0);  // they were free
}

TEST(StepClock, AGemmThatWantsAllSmsWaitsForThoseOfTheLinks) {
  const DeviceInfo& h200 = device_profile("h200").device;
  GemmPlan all{.blocks = h200.sm_count, .predicted_s = 3.0}, some{.blocks = h200.sm_count / 2, .predicted_s = 4.0};
  const auto ends = [&](const GemmPlan& plan, double links_s) {
    StepClock clock;
    clock.launch_beside(links_s);
    clock.launch_gemm(plan, h200);
    return clock.now_s;
  };
  EXPECT_EQ(ends(all, 0.0), 3.0);
  EXPECT_EQ(ends(all, 1.0), 4.0);
  EXPECT_EQ(ends(all, 30.0), 6.0);  // its late blocks have the SMs that the others left
  for (const double links_s : {0.0, 1.0, 30.0}) EXPECT_EQ(ends(some, links_s), 4.0);
  EXPECT_EQ(delay_s(all, 1.0, probe_cpu(2)), 0.0);
}

Recipe big(const std::vector<std::string>& settings) {
  std::vector<std::string> all = {"run.precision=bf16", "model.d_model=1024", "model.d_ff=4096", "batch.target_tokens=8192",
                                  "batch.source_tokens=8192"};
  all.insert(all.end(), settings.begin(), settings.end());
  return small_recipe(all);
}

// Compute copies come beside the forward pass of the step that reads them: a layer's GEMMs find that layer's there, and the first layer
// does not wait for the last one's.
TEST(ShardedStep, GathersUnderTheForwardPass) {
  for (const char* passes : {"1", "3"}) {
    const ResolvedRecipe resolved = resolve(big({"run.ranks=2", "run.shard=optimizer", concat("batch.accumulate=", passes)}));
    const StepTrace trace = trace_step(resolved, device_profile("h200").device);
    const std::vector<TraceEntry>& entries = trace.trace.entries;
    std::map<std::string, std::size_t> gathered;  // by layer: so many launches beside are done when it is there
    for (std::size_t place = 0; place < trace.beside.entries.size(); ++place) {
      const TraceEntry& entry = entries[trace.beside.entries[place]];
      if (entry.operation != "all_gather") continue;
      EXPECT_LT(trace.beside.entries[place], trace.later_begin);
      EXPECT_EQ(entry.times, 1);
      gathered[entry.layer] = place + 1;
    }
    const auto awaited = [&](std::size_t before) {
      std::size_t most = 0;
      for (const LaunchesBeside::Await& await : trace.beside.awaits) most = await.before <= before ? std::max(most, await.launched) : most;
      return most;
    };
    std::size_t first = gathered.size(), last = 0, layers = 0;
    for (const auto& [layer, done] : gathered) {
      for (std::size_t i = 0; i < trace.later_begin; ++i) {
        if (!entries[i].gemm || !entries[i].layer.starts_with(layer + ".")) continue;
        ++layers;
        EXPECT_GE(awaited(i), done) << layer;
        first = std::min(first, awaited(i));
        last = std::max(last, awaited(i));
      }
    }
    EXPECT_GT(layers, 4u);
    EXPECT_LT(first, gathered.size());
    EXPECT_GE(last, gathered.size());
  }
}

}  // namespace
}  // namespace tilewave
