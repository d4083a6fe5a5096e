// Schedules at their corners: the first step, the end of the warm-up, the end of the decay, and beyond.
#include "framework/optimizer/learning_rate.h"

#include <gtest/gtest.h>

namespace tilewave {
namespace {

TEST(LearningRate, WarmsUpInAStraightLine) {
  for (const ScheduleKind kind : {ScheduleKind::constant, ScheduleKind::inverse_square_root, ScheduleKind::cosine, ScheduleKind::linear,
                                  ScheduleKind::warmup_stable_decay}) {
    const Schedule schedule{.kind = kind, .peak = 0.8, .warmup_steps = 4, .decay_steps = 10};
    EXPECT_DOUBLE_EQ(learning_rate(schedule, 1), 0.2);
    EXPECT_DOUBLE_EQ(learning_rate(schedule, 2), 0.4);
    EXPECT_DOUBLE_EQ(learning_rate(schedule, 4), 0.8);
  }
}

TEST(LearningRate, ConstantStays) {
  const Schedule schedule{.kind = ScheduleKind::constant, .peak = 0.8, .warmup_steps = 4};
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 5), 0.8);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 1'000'000), 0.8);
  EXPECT_DOUBLE_EQ(learning_rate({.peak = 0.8}, 1), 0.8);
}

TEST(LearningRate, InverseSquareRootMeetsThePeakAndHalvesWithFourTimesTheSteps) {
  const Schedule schedule{.kind = ScheduleKind::inverse_square_root, .peak = 0.8, .warmup_steps = 100};
  EXPECT_NEAR(learning_rate(schedule, 101), 0.8 * std::sqrt(100.0 / 101.0), 1e-15);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 400), 0.4);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 1600), 0.2);
  EXPECT_DOUBLE_EQ(learning_rate({.kind = ScheduleKind::inverse_square_root, .peak = 0.8, .warmup_steps = 0}, 4), 0.4);
}

TEST(LearningRate, CosineEndsAtZeroAndStaysThere) {
  const Schedule schedule{.kind = ScheduleKind::cosine, .peak = 0.8, .warmup_steps = 10, .decay_steps = 30};
  EXPECT_NEAR(learning_rate(schedule, 15), 0.4 * (1.0 + std::sqrt(0.5)), 1e-15);
  EXPECT_NEAR(learning_rate(schedule, 20), 0.4, 1e-15);
  EXPECT_NEAR(learning_rate(schedule, 30), 0.0, 1e-15);
  EXPECT_NEAR(learning_rate(schedule, 31), 0.0, 1e-15);
  EXPECT_NEAR(learning_rate(schedule, 1'000'000), 0.0, 1e-15);
  double before = 0.8;
  for (std::int64_t step = 11; step <= 30; ++step) {
    EXPECT_LT(learning_rate(schedule, step), before);
    before = learning_rate(schedule, step);
  }
}

TEST(LearningRate, CosineWhoseWarmUpFillsTheRun) {
  const Schedule schedule{.kind = ScheduleKind::cosine, .peak = 0.8, .warmup_steps = 10, .decay_steps = 10};
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 10), 0.8);
  EXPECT_NEAR(learning_rate(schedule, 11), 0.0, 1e-15);
}

TEST(LearningRate, CosineFallsToTheLeastRate) {
  const Schedule schedule{.kind = ScheduleKind::cosine, .peak = 0.8, .warmup_steps = 10, .decay_steps = 30, .least = 0.2};
  EXPECT_NEAR(learning_rate(schedule, 20), 0.5, 1e-15);
  EXPECT_NEAR(learning_rate(schedule, 30), 0.2, 1e-15);
  EXPECT_NEAR(learning_rate(schedule, 1'000'000), 0.2, 1e-15);
}

TEST(LearningRate, LinearFallsInAStraightLineAndStays) {
  const Schedule schedule{.kind = ScheduleKind::linear, .peak = 0.8, .warmup_steps = 10, .decay_steps = 30, .least = 0.2};
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 10), 0.8);
  EXPECT_NEAR(learning_rate(schedule, 15), 0.65, 1e-15);
  EXPECT_NEAR(learning_rate(schedule, 20), 0.5, 1e-15);
  EXPECT_NEAR(learning_rate(schedule, 30), 0.2, 1e-15);
  EXPECT_NEAR(learning_rate(schedule, 31), 0.2, 1e-15);
  EXPECT_NEAR(learning_rate({.kind = ScheduleKind::linear, .peak = 0.8, .decay_steps = 4}, 3), 0.2, 1e-15);
}

TEST(LearningRate, WarmupStableDecayStaysAtThePeakBeforeItFalls) {
  const Schedule schedule{
      .kind = ScheduleKind::warmup_stable_decay, .peak = 0.8, .warmup_steps = 10, .decay_steps = 30, .decay_from = 20, .least = 0.2};
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 5), 0.4);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 11), 0.8);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 20), 0.8);
  EXPECT_NEAR(learning_rate(schedule, 25), 0.5, 1e-15);
  EXPECT_NEAR(learning_rate(schedule, 30), 0.2, 1e-15);
  EXPECT_NEAR(learning_rate(schedule, 99), 0.2, 1e-15);
}

}  // namespace
}  // namespace tilewave
