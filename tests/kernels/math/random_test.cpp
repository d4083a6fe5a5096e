// Philox against the known answers that its authors publish with Random123 (kat_vectors, philox4x32-10), and the draws of
// dropout: which words an element gets, and how many elements a threshold keeps.
#include "kernels/math/random.h"

#include <gtest/gtest.h>
#include <set>

namespace tilewave {
namespace {

TEST(Philox, GivesItsKnownAnswers) {
  EXPECT_EQ(philox(0, {0, 0, 0, 0}), (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox(0xffffffffffffffff, {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox(0x299f31d0a4093822, {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(DropoutDraws, DifferInEveryCoordinate) {
  std::set<PhiloxCounter> draws;
  for (const std::uint64_t seed : {0, 1}) {
    for (const std::int64_t step : {1, 2}) {
      for (const std::uint32_t site : {0, 1}) {
        for (const std::uint32_t plane : {0, 1}) {
          for (const std::int64_t row : {0, 1}) {
            for (const std::int64_t quad : {0, 1}) draws.insert(dropout_draws(seed, step, site, plane, row, quad));
          }
        }
      }
    }
  }
  EXPECT_EQ(draws.size(), 64u);
}

TEST(KeepThreshold, IsExactToTwoToTheMinus32) {
  EXPECT_TRUE(keeps(0, keep_threshold(0.0)));
  EXPECT_EQ(keep_threshold(0.5), 0x80000000u);
  EXPECT_EQ(keep_threshold(0.25), 0x40000000u);
  EXPECT_TRUE(keeps(0x40000000u, keep_threshold(0.25)));
  EXPECT_FALSE(keeps(0x3fffffffu, keep_threshold(0.25)));
  EXPECT_EQ(keep_threshold(1.0), 0xffffffffu);
}

}  // namespace
}  // namespace tilewave
