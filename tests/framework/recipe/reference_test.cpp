// The generated tables and their place in a document.
#include "framework/recipe/reference.h"

#include <gtest/gtest.h>

#include "kernels/core/error.h"
#include "tests/framework/recipe/bakery.h"

namespace tilewave {
namespace {

TEST(Reference, TabulatesEveryKey) {
  Bakery bakery;
  EXPECT_EQ(reference_tables(sections_of(bakery)), R"(
### [dough]

What is baked.

| key | type | unit | default | meaning |
|---|---|---|---|---|
| `grain` | "wheat", "rye" or "spelt" |  | `"rye"` | what is ground |
| `loaves` | an integer from 1 to 100 | loaves | `12` | made at once |
| `salt` | a number of at least 0 and below 1 | fraction | `0.02` | of the flour |
| `label` | a string |  | `"plain"` | printed on the bag |
| `sourdough` | true or false |  | `true` | no yeast |

### [oven]

Where.

| key | type | unit | default | meaning |
|---|---|---|---|---|
| `heat` | a number above 0 | degrees | `250.0` | of the stone |
| `minutes` | an integer of at least 0 |  | `40` | until done |

)");
}

TEST(Reference, ReplacesWhatStandsBetweenTheMarkers) {
  const std::string begin(kReferenceBegin), end(kReferenceEnd);
  EXPECT_EQ(with_reference("before\n" + begin + "old\n" + end + "after\n", "new\n"), "before\n" + begin + "new\n" + end + "after\n");
  EXPECT_THROW(with_reference("before\n" + begin + "old\n", "new\n"), Error);
  EXPECT_THROW(with_reference(end + begin, "new\n"), Error);
}

}  // namespace
}  // namespace tilewave
