// The least hashes, with all copies of an example on one side.
#include "framework/data/held_out.h"

#include <gtest/gtest.h>

namespace tilewave {
namespace {

using Hashes = std::vector<std::uint64_t>;

TEST(HeldOut, AreTheLeastHashes) {
  EXPECT_EQ(least_hashes({50, 10, 40, 20, 30}, 2), (Hashes{10, 20}));
  EXPECT_EQ(least_hashes({50, 10}, 5), (Hashes{10, 50}));
}

TEST(HeldOut, CopiesStayTogether) {
  EXPECT_EQ(least_hashes({10, 20, 10, 30, 20, 20}, 2), (Hashes{10}));
  EXPECT_EQ(least_hashes({10, 20, 10, 30, 20, 20}, 3), (Hashes{10, 30})) << "three copies of 20 are one too many";
  EXPECT_EQ(least_hashes({10, 10, 10, 20, 20}, 1), (Hashes{20})) << "the rarest, where none fits";
}

}  // namespace
}  // namespace tilewave
