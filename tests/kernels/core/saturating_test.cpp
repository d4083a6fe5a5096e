#include "kernels/core/saturating.h"

#include <gtest/gtest.h>

#include "kernels/gemm/problem.h"

namespace tilewave {
namespace {

constexpr std::int64_t kLarge = std::int64_t{1} << 31;

TEST(SaturatingProduct, StopsAtTheLargestNumber) {
  EXPECT_EQ(saturating_product(2, kLarge, kLarge / 2), kLarge * kLarge);
  EXPECT_EQ(saturating_product(2, kLarge, kLarge), kUncountable);
  EXPECT_EQ(saturating_product(4, kLarge, kLarge, kLarge), kUncountable) << "which wraps to 0";
  EXPECT_EQ(saturating_product(kLarge, kLarge, kLarge, 0), 0);
}

TEST(SaturatingProduct, CountsAProblemsFlops) {
  EXPECT_EQ((GemmProblem{.m = 3, .n = 5, .k = 7}.flops()), 210);
  EXPECT_EQ((GemmProblem{.m = kLarge, .n = kLarge, .k = kLarge}.flops()), kUncountable);
}

}  // namespace
}  // namespace tilewave
