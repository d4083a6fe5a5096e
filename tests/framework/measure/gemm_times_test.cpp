// Every GEMM of a group gets its own time, in the group's order, whichever of them is the fastest.
#include "framework/measure/gemm_times.h"

#include <algorithm>
#include <gtest/gtest.h>

#include "kernels/gemm/catalog.h"

namespace tilewave {
namespace {

PlannedGemm square(std::int64_t side) {
  const std::int64_t alignment = std::min<std::int64_t>(4 * side, 128);
  const GemmProblem problem = {.m = side,
                               .n = side,
                               .k = side,
                               .a_pitch = side,
                               .b_pitch = side,
                               .d_pitch = side,
                               .a_alignment = alignment,
                               .b_alignment = alignment,
                               .d_alignment = alignment};
  return {.problem = problem, .plan = choose(problem, probe_cpu(1))};
}

TEST(GemmTimes, AreFilledInInTheGroupsOrder) {
  std::vector<PlannedGemm> group = {square(256), square(16), square(64)};
  time_gemms(make_cpu_queue(1), group,
             {.load_s = 0.0, .block_s = 0.0005, .screening_block_s = 0.0005, .screening_blocks = 1, .rounds = 3, .finalists = 1});
  EXPECT_GT(group[1].seconds, 0.0);
  EXPECT_GT(group[2].seconds, group[1].seconds) << "64 times the arithmetic";
  EXPECT_GT(group[0].seconds, group[2].seconds) << "64 times the arithmetic";
}

}  // namespace
}  // namespace tilewave
