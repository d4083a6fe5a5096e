// A Chrome trace: complete events in the order of time, launches within their step.
#include "models/training/launch_trace.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace tilewave {
namespace {

ProfiledLaunch launch(const char* layer, std::int64_t step, double begin_s, double seconds) {
  ProfiledLaunch made;
  made.entry.layer = layer;
  made.entry.operation = "gemm";
  made.entry.cost = {.flops = 100, .bytes = 10};
  made.step = step;
  made.begin_s = begin_s;
  made.seconds = seconds;
  return made;
}

TEST(LaunchTrace, StepsHoldTheirLaunches) {
  const std::vector<ProfiledLaunch> launches = {launch("a \"quoted\"", 5, 0.0, 1e-3), launch("b", 5, 1.5e-3, 2e-3),
                                                launch("a", 6, 4e-3, 1e-3)};
  const nlohmann::json trace = nlohmann::json::parse(launch_trace(launches, "tilewave r"));
  std::vector<nlohmann::json> steps, done;
  for (const nlohmann::json& event : trace.at("traceEvents")) {
    EXPECT_EQ(event.at("pid"), 1);
    if (event.at("ph") == "M") continue;
    EXPECT_EQ(event.at("ph"), "X");
    (event.at("cat") == "step" ? steps : done).push_back(event);
  }
  ASSERT_EQ(steps.size(), 2U);
  ASSERT_EQ(done.size(), 3U);
  EXPECT_EQ(steps[0].at("name"), "step 5");
  EXPECT_EQ(steps[0].at("ts"), 0.0);
  EXPECT_NEAR(steps[0].at("dur").get<double>(), 3500.0, 1e-9);
  EXPECT_NEAR(steps[1].at("ts").get<double>(), 4000.0, 1e-9);
  EXPECT_EQ(done[0].at("name"), "a \"quoted\": gemm");
  EXPECT_NEAR(done[1].at("ts").get<double>(), 1500.0, 1e-9);
  EXPECT_NEAR(done[1].at("dur").get<double>(), 2000.0, 1e-9);
  EXPECT_EQ(done[1].at("args").at("flops"), 100);
  EXPECT_NE(done[0].at("tid"), steps[0].at("tid")) << "a track of steps and one of launches";
}

TEST(LaunchTrace, OfNoLaunchIsATraceToo) { EXPECT_EQ(nlohmann::json::parse(launch_trace({}, "tilewave")).at("traceEvents").size(), 3U); }

}  // namespace
}  // namespace tilewave
