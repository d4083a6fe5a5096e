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

WatchedRanks watched(const std::filesystem::path& folder, int rank, Lost& lost, int count = 2) {
  return {.folder = folder, .rank = rank, .count = count, .timeout_s = 0.4, .lost = [&lost](const std::string& sentence) {
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

// The first one alive says why, before another's end lets who started them end it unheard; where it says nothing, another one speaks.
TEST(RankWatch, LetsTheFirstOneAliveSpeak) {
  const TemporaryFolder folder;
  write_text(folder.path() / "2", "17 4711 a machine far away\n");
  std::atomic<bool> silent = false;
  Lost first, second;
  WatchedRanks holds_on = watched(folder.path(), 0, first, 3);
  holds_on.lost = [&](const std::string&) { silent = true; };
  const auto begun = std::chrono::steady_clock::now();
  const RankWatch other(watched(folder.path(), 1, second, 3));
  {
    const RankWatch watch(holds_on);
    ASSERT_TRUE(waits_for(silent, std::chrono::seconds(20)));
    EXPECT_FALSE(second.called);
  }
  std::jthread beats([&](const std::stop_token& stop) {  // a process that lives and says nothing
    for (int number = 100; !stop.stop_requested(); ++number) {
      write_text(folder.path() / "staged", std::to_string(number) + " 12 here\n");
      std::filesystem::rename(folder.path() / "staged", folder.path() / "0");
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  });
  ASSERT_TRUE(waits_for(second.called, std::chrono::seconds(20)));
  EXPECT_GT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(2));
  const std::scoped_lock held(second.lock);
  EXPECT_EQ(second.sentence.find("rank 2 of 3"), 0u) << second.sentence;
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
