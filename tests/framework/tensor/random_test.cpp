// The generator's published sequence, exact bounded draws, and a shuffle that every implementation repeats.
#include "framework/tensor/random.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <gtest/gtest.h>
#include <numeric>
#include <set>
#include <vector>

namespace tilewave {
namespace {

TEST(Random, IsSplitMix64) {
  Random random(1234567);
  for (const std::uint64_t expected :
       {6457827717110365317u, 3203168211198807973u, 9817491932198370423u, 4593380528125082431u, 16408922859458223821u}) {
    EXPECT_EQ(random.next(), expected);
  }
}

TEST(Random, DrawsEveryResultBelowABoundEquallyOften) {
  for (const std::uint32_t bound : {1u, 2u, 3u, 7u, 10u}) {
    Random random(bound);
    std::vector<int> count(bound);
    const int draws = 20'000;
    for (int i = 0; i < draws; ++i) ++count.at(random.below(bound));
    const double expected = static_cast<double>(draws) / bound;
    for (const int c : count) EXPECT_NEAR(c, expected, 5.0 * std::sqrt(expected)) << "bound " << bound;
  }
}

TEST(Random, DoesNotFavourSmallResultsOfALargeBound) {
  // Scaling 32 bits to 3/4 of their range without rejection would give a third of the results twice the chance.
  const std::uint32_t bound = 3u << 30;
  Random random(5);
  std::array<int, 3> thirds = {};
  for (int i = 0; i < 30'000; ++i) ++thirds.at(random.below(bound) % 3);
  for (const int c : thirds) EXPECT_NEAR(c, 10'000, 500);
}

TEST(Random, KeysDependOnEveryWordAndTheirOrder) {
  const std::set<std::uint64_t> keys = {random_key(1),    random_key(2),       random_key(1, 2),
                                        random_key(2, 1), random_key(1, 2, 0), random_key(1, 0, 2)};
  EXPECT_EQ(keys.size(), 6u);
}

TEST(Random, ShufflesIntoAPermutationKnownBeforehand) {
  std::vector<int> items(10);
  std::iota(items.begin(), items.end(), 0);
  Random random(7);
  shuffle(std::span<int>(items), random);
  EXPECT_EQ(items, (std::vector<int>{9, 5, 8, 6, 1, 2, 4, 7, 0, 3}));
  std::sort(items.begin(), items.end());
  for (int i = 0; i < 10; ++i) EXPECT_EQ(items[static_cast<std::size_t>(i)], i);
}

TEST(Random, PutsEveryItemInEveryPlaceEquallyOften) {
  std::array<std::array<int, 4>, 4> seen = {};
  for (std::uint64_t seed = 0; seed < 8'000; ++seed) {
    std::array<int, 4> items = {0, 1, 2, 3};
    Random random(random_key(seed));
    shuffle(std::span<int>(items), random);
    for (std::size_t place = 0; place < 4; ++place) ++seen[static_cast<std::size_t>(items[place])][place];
  }
  for (const auto& places : seen) {
    for (const int count : places) EXPECT_NEAR(count, 2'000, 250);
  }
}

}  // namespace
}  // namespace tilewave
