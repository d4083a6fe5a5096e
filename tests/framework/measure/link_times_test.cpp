// A fit finds the links that times were made of, also among some that a busy machine has spoiled.
#include "framework/measure/link_times.h"

#include <cmath>
#include <gtest/gtest.h>

#include "kernels/gemm/cost/operation_time.h"

namespace tilewave {
namespace {

std::vector<CollectiveTime> times_of(const LinkFit& links, double launch_s) {
  std::vector<CollectiveTime> times;
  for (std::int64_t bytes = 4096; bytes <= std::int64_t{1} << 28; bytes *= 4) {
    for (const CollectiveKind kind :
         {CollectiveKind::all_reduce, CollectiveKind::reduce_scatter, CollectiveKind::all_gather, CollectiveKind::broadcast}) {
      const CollectiveWork work{.kind = kind, .bytes = bytes, .ranks = 4};
      times.push_back(
          {.operation = "one of them", .work = work, .timing = {.name = "one of them", .median_s = links.seconds(work, launch_s)}});
    }
  }
  return times;
}

TEST(LinkTimes, AFitFindsTheLinksAgain) {
  for (const LinkFit& links : {LinkFit{.bytes_per_s = 3.2e11, .hop_s = 2.5e-6}, LinkFit{.bytes_per_s = 5e9, .hop_s = 2e-5}}) {
    constexpr double kLaunch = 1e-6;
    std::vector<CollectiveTime> times = times_of(links, kLaunch);
    const LinkFit found = fit_links(times, kLaunch);
    EXPECT_NEAR(found.bytes_per_s / links.bytes_per_s, 1.0, 1e-3);
    EXPECT_NEAR(found.hop_s / links.hop_s, 1.0, 1e-3);
    EXPECT_LT(found.error, 1e-3);
    times[5].timing.median_s *= 40.0;
    const LinkFit spoiled = fit_links(times, kLaunch);
    EXPECT_NEAR(spoiled.bytes_per_s / links.bytes_per_s, 1.0, 0.1);
    EXPECT_NEAR(spoiled.hop_s / links.hop_s, 1.0, 0.1);
    EXPECT_GT(spoiled.error, 0.05);
  }
}

// By hand: of 3 ranks a sum goes around twice, in 4 hops, with two thirds of its bytes each time.
TEST(LinkTimes, ARingsTimeIsItsHopsAndBytes) {
  const LinkFit links{.bytes_per_s = 1e9, .hop_s = 1e-3};
  EXPECT_DOUBLE_EQ(links.seconds({.kind = CollectiveKind::all_reduce, .bytes = 3'000'000, .ranks = 3}, 0.5), 0.5 + 4e-3 + 4e-3);
  EXPECT_DOUBLE_EQ(links.seconds({.kind = CollectiveKind::all_gather, .bytes = 3'000'000, .ranks = 3}, 0.0), 2e-3 + 2e-3);
  EXPECT_THROW(fit_links({}, 0.0), Error);
}

}  // namespace
}  // namespace tilewave
