// Signs of life, between threads that stand for ranks.
#include "framework/distributed/rank_watch.h"

#include <atomic>
#include <chrono>
#include <fstream>
#include <gtest/gtest.h>
#include <memory>
#include <mutex>

#include "tests/shell.h"

namespace tilewave {
namespace {

struct Lost {
  std::mutex lock;
  std::string sentence;
  std::atomic<bool> called = false;
};

WatchedRanks watched(const std::filesystem::path& folder, int rank, Lost& lost) {
  return {.folder = folder, .rank = rank, .count = 2, .timeout_s = 0.4, .lost = [&lost](const std::string& sentence) {
            const std::scoped_lock held(lost.lock);
            lost.sentence = sentence;
            lost.called = true;
          }};
}

bool waits_for(const std::atomic<bool>& flag, std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (!flag && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return flag;
}

TEST(RankWatch, NamesARankThatShowsNoSignOfLife) {
  const TemporaryFolder folder;
  write_text(folder.path() / "1", "17 4711 a machine far away\n");  // a beat that nothing follows
  Lost lost;
  const RankWatch watch(watched(folder.path(), 0, lost));
  ASSERT_TRUE(waits_for(lost.called, std::chrono::seconds(20)));
  const std::scoped_lock held(lost.lock);
  EXPECT_EQ(lost.sentence,
            "rank 1 of 2 on a machine far away, process 4711, has shown no sign of life for 0.4 s; the run ends here, and its last "
            "checkpoint stands.");
}

// Longer than the time to wait, while both live; and on when one has left in order, or has not come yet.
TEST(RankWatch, LetsLive) {
  const TemporaryFolder folder;
  Lost lost[2];
  auto first = std::make_unique<RankWatch>(watched(folder.path(), 0, lost[0]));
  EXPECT_FALSE(waits_for(lost[0].called, std::chrono::milliseconds(700)));
  auto second = std::make_unique<RankWatch>(watched(folder.path(), 1, lost[1]));
  EXPECT_FALSE(waits_for(lost[0].called, std::chrono::milliseconds(700)));
  second.reset();
  EXPECT_FALSE(waits_for(lost[0].called, std::chrono::milliseconds(700)));
  EXPECT_FALSE(lost[1].called);
  first.reset();
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "0"));
}

}  // namespace
}  // namespace tilewave
