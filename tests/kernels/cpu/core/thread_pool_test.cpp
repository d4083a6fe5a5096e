// Every index once, whatever the numbers of threads and indices; exceptions arrive; the pool stays usable.
#include "kernels/cpu/core/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <new>
#include <stdexcept>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "kernels/core/error.h"
#include "tests/sanitized.h"

namespace tilewave {
namespace {

TEST(ThreadPool, RunsEveryIndexOnce) {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.size(), threads);
    for (const std::int64_t count : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> visits(static_cast<std::size_t>(count));
      std::atomic<bool> thread_in_range = true;
      pool.parallel_for(count, [&](std::int64_t index, int thread) {
        ++visits[static_cast<std::size_t>(index)];
        if (thread < 0 || thread >= threads) thread_in_range = false;
      });
      for (const auto& visit : visits) EXPECT_EQ(visit, 1);
      EXPECT_TRUE(thread_in_range);
    }
  }
}

// A loop on fewer threads than there are; and each thread begins with the same neighbours in every such loop.
TEST(ThreadPool, SharesNeighboursAmongSoManyThreads) {
  ThreadPool pool(4);
  for (int loop = 0; loop < 50; ++loop) {
    std::atomic<int> arrived = 0;
    std::vector<int> threads(6, -1);
    pool.parallel_for(
        6,
        [&](std::int64_t index, int thread) {
          threads[static_cast<std::size_t>(index)] = thread;
          if (index % 3 != 0) return;
          ++arrived;
          while (arrived < 2) std::this_thread::yield();
        },
        2);
    EXPECT_EQ(threads[0], 0);
    EXPECT_EQ(threads[3], 1);
  }
}

// Shares that the loop brings: each thread begins with its own, and helps where it has none.
TEST(ThreadPool, TakesTheSharesThatALoopBrings) {
  ThreadPool pool(2);
  for (int loop = 0; loop < 50; ++loop) {
    std::atomic<int> arrived = 0;
    std::vector<int> threads(6, -1);
    const std::vector<std::int64_t> ends = {1, 6}, second_alone = {0, 6};
    pool.parallel_for(ends, [&](std::int64_t index, int thread) {
      threads[static_cast<std::size_t>(index)] = thread;
      if (index > 1) return;
      ++arrived;
      while (arrived < 2) std::this_thread::yield();
    });
    EXPECT_EQ(threads[0], 0);
    EXPECT_EQ(threads[1], 1);
    EXPECT_EQ(std::ranges::count(threads, -1), 0);
    std::atomic<int> visits = 0;
    pool.parallel_for(second_alone, [&](std::int64_t, int) { ++visits; });
    EXPECT_EQ(visits, 6);
  }
  pool.parallel_for(std::vector<std::int64_t>{}, [](std::int64_t, int) { FAIL(); });
}

TEST(ThreadPool, ALoopWithinALoopIsRefused) {
  ThreadPool pool(2);
  const auto nested = [&] { pool.parallel_for(2, [&](std::int64_t, int) { pool.parallel_for(2, [](std::int64_t, int) {}); }); };
  EXPECT_THROW(nested(), Error);
  std::atomic<int> visits = 0;
  pool.parallel_for(2, [&](std::int64_t, int) { ++visits; });
  EXPECT_EQ(visits, 2);
}

// Loops that follow each other at once find workers spinning, those after a pause find them asleep.
TEST(ThreadPool, RunsLoopAfterLoop) {
  ThreadPool pool(3);
  std::atomic<std::int64_t> sum = 0;
  for (int loop = 0; loop < 300; ++loop) {
    if (loop % 100 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    pool.parallel_for(10, [&](std::int64_t index, int) { sum += index; });
    ASSERT_EQ(sum, 45 * (loop + 1));
  }
}

// Two indices that wait for each other can only end on two threads.
TEST(ThreadPool, WorksAtTheSameTime) {
  ThreadPool pool(2);
  std::atomic<int> arrived = 0;
  pool.parallel_for(2, [&](std::int64_t, int) {
    ++arrived;
    while (arrived < 2) std::this_thread::yield();
  });
  EXPECT_EQ(arrived, 2);
}

TEST(ThreadPool, RethrowsAndStaysUsable) {
  for (const int threads : {1, 4}) {
    ThreadPool pool(threads);
    for (int loop = 0; loop < 50; ++loop) {
      EXPECT_THROW(pool.parallel_for(64,
                                     [](std::int64_t index, int) {
                                       if (index == 13) throw std::runtime_error("13");
                                     }),
                   std::runtime_error);
    }
    std::atomic<int> visits = 0;
    pool.parallel_for(64, [&](std::int64_t, int) { ++visits; });
    EXPECT_EQ(visits, 64);
  }
}

// Of whichever thread: memory runs out in a worker as it does in the caller.
TEST(ThreadPool, MemoryThatRunsOutInAWorkerIsTheCallersToHandle) {
  ThreadPool pool(2);
  for (int loop = 0; loop < 20; ++loop) {
    std::atomic<int> arrived = 0;
    EXPECT_THROW(pool.parallel_for(2,
                                   [&](std::int64_t, int thread) {
                                     ++arrived;
                                     while (arrived < 2) std::this_thread::yield();  // each thread has one of the two
                                     if (thread == 1) throw std::bad_alloc();
                                   }),
                 std::bad_alloc);
  }
  std::atomic<int> visits = 0;
  pool.parallel_for(64, [&](std::int64_t, int) { ++visits; });
  EXPECT_EQ(visits, 64);
}

// Those that were started end, and whoever asked is told how many there were.
TEST(ThreadPoolDeathTest, FewerThreadsThanAskedForAreAnError) {
  if (kSanitized) GTEST_SKIP() << "under the address sanitizer";
  const auto ask_for_too_many = [] {
    std::int64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t most = static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE)) + (rlim_t{256} << 20);
    const rlimit limit{.rlim_cur = most, .rlim_max = most};
    if (setrlimit(RLIMIT_AS, &limit) != 0) std::_Exit(3);
    try {
      const ThreadPool pool(4000);
    } catch (const Error& error) {
      std::fputs(error.what(), stderr);
      std::_Exit(0);
    }
    std::_Exit(4);
  };
  EXPECT_EXIT(ask_for_too_many(), testing::ExitedWithCode(0), "only [0-9]+ of 4000 threads could be started: .*; use --threads");
}

}  // namespace
}  // namespace tilewave
