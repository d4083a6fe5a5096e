// Each part is done once, whatever the number of threads, and what fails is told of alike.
#include "framework/data/host_threads.h"

#include <algorithm>
#include <atomic>
#include <gtest/gtest.h>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

namespace tilewave {
namespace {

TEST(HostThreads, DoEachPartOnce) {
  for (const std::int64_t threads : {1, 2, 5, 40}) {
    for (const std::int64_t parts : {0, 1, 4, 1000}) {
      std::vector<std::atomic<int>> done(static_cast<std::size_t>(parts));
      share_out(parts, threads, [&](std::int64_t index) { ++done[static_cast<std::size_t>(index)]; });
      for (const std::atomic<int>& times : done) EXPECT_EQ(times.load(), 1) << parts << " parts, " << threads << " threads";
    }
  }
}

TEST(HostThreads, TellOfTheFirstPartThatFails) {
  for (const std::int64_t threads : {1, 3}) {
    std::atomic<int> done{0};
    try {
      share_out(20, threads, [&](std::int64_t index) {
        ++done;
        if (index % 7 == 3) throw std::runtime_error(std::to_string(index));
      });
      ADD_FAILURE() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "3");
    }
    EXPECT_EQ(done.load(), 20) << "the others are done all the same";
  }
}

TEST(HostThreads, AreAsManyAsTheWorkIsWorth) {
  EXPECT_EQ(threads_for(0, 100), 1);
  EXPECT_EQ(threads_for(199, 100), 1);
  const std::int64_t most = threads_for(std::numeric_limits<std::int64_t>::max(), 1);
  EXPECT_GE(most, 1);
  EXPECT_EQ(threads_for(200, 100), std::min<std::int64_t>(2, most));
}

}  // namespace
}  // namespace tilewave
