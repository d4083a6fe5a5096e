// Zipf's law and the planted rule, measured; batches without a padding row at any shape.
#include "framework/data/synthetic.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <numeric>

#include "framework/data/tokenizer.h"
#include "tests/framework/data/scratch.h"

namespace tilewave {
namespace {

TEST(ZipfChain, DrawsByZipfsLaw) {
  for (const std::int64_t vocabulary : {5, 11, 1'000}) {
    const ZipfChain chain(vocabulary);
    const auto ids = static_cast<std::size_t>(vocabulary - kSpecialIds);
    std::vector<int> count(ids);
    Random random(1);
    const int draws = 400'000;
    for (int i = 0; i < draws; ++i) ++count.at(static_cast<std::size_t>(chain.draw(random) - kSpecialIds));
    double harmonic = 0.0;
    for (std::size_t i = 0; i < ids; ++i) harmonic += 1.0 / static_cast<double>(i + 1);
    for (std::size_t i = 0; i < ids; ++i) {
      const double expected = draws / harmonic / static_cast<double>(i + 1);
      EXPECT_NEAR(count[i], expected, 6.0 * std::sqrt(expected)) << "id " << i << " of " << ids;
    }
  }
}

TEST(ZipfChain, HasASuccessorForEveryId) {
  for (const std::int64_t vocabulary : {5, 6, 7, 50'257}) {
    const ZipfChain chain(vocabulary);
    std::vector<bool> reached(static_cast<std::size_t>(vocabulary));
    for (auto id = static_cast<std::int32_t>(kSpecialIds); id < vocabulary; ++id) {
      const std::int32_t next = chain.successor(id);
      ASSERT_TRUE(next >= kSpecialIds && next < vocabulary);
      ASSERT_FALSE(reached[static_cast<std::size_t>(next)]);
      reached[static_cast<std::size_t>(next)] = true;
    }
  }
}

TEST(Synthetic, PlantsTheRuleInHalfOfTheTokens) {
  const ZipfChain chain(50'257);
  const Batch batch = synthetic_batches(50'257, 1, {.source_rows = 0, .target_rows = 40'000, .sequence = 512}).next().value();
  int obeys = 0;
  for (std::size_t row = 0; row < batch.target_in.size(); ++row)
    obeys += batch.target_out[row] == chain.successor(batch.target_in[row]) ? 1 : 0;
  EXPECT_NEAR(obeys, 20'000, 600);
}

TEST(Synthetic, TranslatesASourceByTheRule) {
  const ZipfChain chain(300);
  const Batch batch = synthetic_batches(300, 1, {.source_rows = 100, .target_rows = 100, .sequence = 25}).next().value();
  for (std::size_t row = 0; row < 100; ++row) {
    if (row % 25 == 24) {
      EXPECT_EQ(batch.target_out[row], kEndId);
    } else {
      EXPECT_EQ(batch.target_out[row], chain.successor(batch.source_ids[row]));
    }
  }
}

TEST(Synthetic, LeavesNoGhostAtAnyShape) {
  for (const BatchShape& shape :
       {BatchShape{0, 4'095, 512}, BatchShape{0, 1, 1}, BatchShape{0, 10, 64}, BatchShape{4'095, 4'095, 512}, BatchShape{4'096, 2'050, 512},
        BatchShape{2'050, 4'097, 512}, BatchShape{10, 13, 4}, BatchShape{1, 1, 1}, BatchShape{4, 16, 4}}) {
    BatchStream stream = synthetic_batches(100, 2, shape);
    for (int step = 0; step < 3; ++step) {
      const Batch batch = stream.next().value();
      EXPECT_EQ(std::count(batch.source_ids.begin(), batch.source_ids.end(), kPaddingId), 0);
      EXPECT_EQ(std::count(batch.target_out.begin(), batch.target_out.end(), kPaddingId), 0);
      EXPECT_EQ(batch.real_tokens, shape.target_rows);
      for (const auto& lengths : {batch.source_lengths, batch.target_lengths}) {
        for (const std::int32_t length : lengths) EXPECT_LE(length, shape.sequence);
      }
      const std::vector<std::int32_t>& longer = shape.source_rows > shape.target_rows ? batch.source_lengths : batch.target_lengths;
      for (std::size_t i = 0; i + 1 < longer.size(); ++i) EXPECT_EQ(longer[i], shape.sequence) << "only the last sequence is cut";
    }
  }
}

TEST(Synthetic, RefusesWhatItCannotMake) {
  EXPECT_TRUE(says(input_error([] { synthetic_batches(4, 1, {.source_rows = 0, .target_rows = 8, .sequence = 8}); }),
                   {"model.vocabulary", "more than 4"}));
  EXPECT_TRUE(says(input_error([] { synthetic_batches(100, 1, {.source_rows = 3, .target_rows = 16, .sequence = 4}); }),
                   {"batch.sequence = 4", "4 sequences", "3 rows"}));
}

}  // namespace
}  // namespace tilewave
