// Quantiles are exact; a comparison ranks, screens, keeps whom it must and lets its candidates take turns.
#include "framework/measure/interleave.h"

#include <chrono>
#include <gtest/gtest.h>
#include <map>
#include <set>

#include "kernels/core/error.h"

namespace tilewave {
namespace {

// Busy for so long, and says in what order it was called.
Candidate busy(const std::string& name, double microseconds, std::vector<std::string>* order = nullptr, bool always_final = false) {
  return {.name = name,
          .launch =
              [=](std::size_t) {
                const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double, std::micro>(microseconds);
                while (std::chrono::steady_clock::now() < end) {
                }
                if (order != nullptr && (order->empty() || order->back() != name)) order->push_back(name);
              },
          .always_final = always_final};
}

constexpr InterleaveOptions kShort = {
    .load_s = 0.0, .block_s = 0.002, .screening_block_s = 0.002, .screening_blocks = 1, .rounds = 5, .finalists = 2};

TEST(Interleave, QuantilesLieBetweenValuesByProportion) {
  EXPECT_EQ(quantile({3.0}, 0.5), 3.0);
  EXPECT_EQ(quantile({4.0, 1.0, 3.0, 2.0}, 0.5), 2.5);
  EXPECT_EQ(quantile({4.0, 1.0, 3.0, 2.0}, 0.25), 1.75);
  EXPECT_EQ(quantile({4.0, 1.0, 3.0, 2.0}, 1.0), 4.0);
  EXPECT_THROW(quantile({}, 0.5), Error);
  EXPECT_THROW(quantile({1.0}, 1.5), Error);
}

// Of n values the k-th from either end hold the median unless fewer than k of n fair coins fall on one side: tables of the sign test.
TEST(Interleave, IntervalsOfAMedianAreTheSignTests) {
  const auto interval = [](int count) {
    std::vector<double> values;
    for (int i = 0; i < count; ++i) values.push_back((i * 7) % count + 1);  // 1 to count, in no order
    return median_interval(values);
  };
  const struct {
    int count;
    double low, high, confidence;
  } table[] = {{1, 1, 1, 0.0},       {2, 1, 2, 0.5},      {5, 1, 5, 0.9375},    {6, 1, 6, 0.96875},
               {9, 2, 8, 0.9609375}, {25, 8, 18, 0.9567}, {100, 40, 61, 0.9648}};
  for (const auto& one : table) {
    const MedianInterval found = interval(one.count);
    EXPECT_EQ(found.low, one.low) << one.count;
    EXPECT_EQ(found.high, one.high) << one.count;
    EXPECT_NEAR(found.confidence, one.confidence, 5e-5) << one.count;
  }
  EXPECT_THROW(median_interval({}), Error);
}

TEST(Interleave, RoundsKeepTheirOrder) {
  const Comparison comparison = compare({busy("slow", 1500, nullptr, true), busy("fast", 50)}, {}, kShort);
  for (const Timing& timing : comparison.ours) {
    ASSERT_EQ(timing.rounds_s.size(), 5U) << timing.name;
    EXPECT_EQ(quantile(timing.rounds_s, 0.5), timing.median_s);
  }
}

TEST(Interleave, TheFastestComesFirstAndTheSlowestIsScreenedOut) {
  const Comparison comparison = compare({busy("slow", 20000), busy("fast", 50), busy("middle", 400)}, {busy("peer", 200)}, kShort);
  ASSERT_EQ(comparison.ours.size(), 2u);
  EXPECT_EQ(comparison.ours[0].name, "fast");
  EXPECT_EQ(comparison.ours[1].name, "middle");
  ASSERT_EQ(comparison.peers.size(), 1u);
  EXPECT_GE(comparison.ours[0].median_s, 50e-6);
  EXPECT_LE(comparison.ours[0].lower_quartile_s, comparison.ours[0].median_s);
  EXPECT_LE(comparison.ours[0].median_s, comparison.ours[0].upper_quartile_s);
}

TEST(Interleave, WhoeverMustStayIsMeasuredToTheEnd) {
  const Comparison comparison = compare({busy("slow", 20000, nullptr, true), busy("fast", 50), busy("middle", 400)}, {}, kShort);
  ASSERT_EQ(comparison.ours.size(), 3u);
  EXPECT_EQ(comparison.ours.back().name, "slow");
}

TEST(Interleave, ABlockEndsWithItsWait) {
  Candidate queued = busy("queued", 0);
  int waits = 0;
  queued.wait = [&] {
    ++waits;
    busy("the queue", 3000).launch(0);
  };
  const Timing timing = compare({queued}, {}, kShort).ours.front();
  EXPECT_EQ(waits, 1 + 1 + kShort.screening_blocks + kShort.rounds) << "one for each block";
  EXPECT_GE(timing.median_s, 3e-3);
}

TEST(Interleave, ATimeIsOneLaunchs) {
  Candidate four = busy("four at a call", 2000);
  four.launches = 4;
  const Timing timing = compare({four}, {}, kShort).ours.front();
  EXPECT_GE(timing.median_s, 500e-6);
  EXPECT_LT(timing.lower_quartile_s, 2000e-6);
}

TEST(Interleave, EveryBlockOfARoundIsMetInTheSameState) {
  InterleaveOptions options = kShort;
  int before = 0;
  const std::function<void()> count = [&] { ++before; };
  options.before_block = &count;
  compare({busy("one", 100), busy("two", 100)}, {busy("peer", 100)}, options);
  EXPECT_EQ(before, 3 * options.rounds);
}

TEST(Interleave, ABlockMayFollowItsOwnCandidatesWork) {
  InterleaveOptions options = kShort;
  options.settle_s = 0.02;
  std::size_t after_another = 0, turns = 0;
  std::string last;
  const auto logged = [&](const std::string& name) {
    Candidate one = busy(name, 2000);
    one.wait = [&, name] {  // the end of a block
      after_another += last != name ? 1 : 0;
      last = name;
      ++turns;
    };
    return one;
  };
  compare({logged("ours")}, {logged("peer")}, options);
  EXPECT_GE(after_another, static_cast<std::size_t>(options.rounds));
  EXPECT_GE(turns, 2u * 2u * static_cast<std::size_t>(options.rounds)) << "a block that settles, and then the one that counts";
}

TEST(Interleave, RoundsTakeTurnsEachInAnOrderOfItsOwn) {
  std::vector<std::string> blocks;
  const auto logged = [&](const std::string& name) {
    Candidate one = busy(name, 2000);
    one.wait = [&blocks, name] { blocks.push_back(name); };
    return one;
  };
  InterleaveOptions options = kShort;
  options.rounds = 9;
  compare({logged("ours")}, {logged("peer"), logged("other peer")}, options);

  constexpr std::size_t kBlocks = 3;  // of a round
  ASSERT_GE(blocks.size(), kBlocks * static_cast<std::size_t>(options.rounds));
  blocks.erase(blocks.begin(), blocks.end() - static_cast<std::ptrdiff_t>(kBlocks) * options.rounds);  // the screening's
  std::set<std::vector<std::string>> orders;
  for (auto round = blocks.begin(); round != blocks.end(); round += kBlocks) {
    orders.emplace(round, round + kBlocks);
    EXPECT_EQ(std::set<std::string>(round, round + kBlocks).size(), kBlocks) << "each once";
  }
  EXPECT_EQ(orders.size(), 6u) << "all that there are";
  std::map<std::string, std::set<std::string>> before;
  for (std::size_t i = 1; i < blocks.size(); ++i) before[blocks[i]].insert(blocks[i - 1]);
  for (auto& [name, others] : before) {
    others.erase(name);
    EXPECT_EQ(others.size(), kBlocks - 1) << name << " after each of the others";
  }
}

TEST(Interleave, NothingToMeasureIsAnError) { EXPECT_THROW(compare({}, {}, kShort), Error); }

}  // namespace
}  // namespace tilewave
