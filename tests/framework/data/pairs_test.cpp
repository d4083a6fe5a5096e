// Batches of pairs: every pair once an epoch, longer ones left out and counted, validation in order.
#include "framework/data/pairs.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>

#include "framework/data/tokenizer.h"
#include "framework/tensor/random.h"
#include "tests/framework/data/scratch.h"

namespace tilewave {
namespace {

constexpr Pass kTraining{.kind = Pass::Kind::shuffled_epochs, .seed = 5};

// Pair i has source tokens i + 4 alone, 1 + i % 7 of them, and a target of i % 5.
std::shared_ptr<const PairTable> counted(std::int32_t count) {
  PairTable table;
  for (std::int32_t i = 0; i < count; ++i) {
    table.add(std::vector<std::int32_t>(static_cast<std::size_t>(1 + i % 7), kSpecialIds + i),
              std::vector<std::int32_t>(static_cast<std::size_t>(i % 5), kSpecialIds + i));
  }
  return std::make_shared<const PairTable>(std::move(table));
}

// The pairs of a batch, by their number.
std::vector<std::int32_t> numbers(const Batch& batch) {
  std::vector<std::int32_t> found;
  std::size_t row = 0;
  for (const std::int32_t length : batch.source_lengths) {
    found.push_back(batch.source_ids[row] - kSpecialIds);
    row += static_cast<std::size_t>(length);
  }
  return found;
}

TEST(Pairs, ComeOnceAnEpochInAnOrderOfItsOwn) {
  const std::int32_t count = 100;
  BatchStream stream = pair_batches(counted(count), {.source_rows = 20, .target_rows = 20, .sequence = 10}, kTraining);
  std::vector<std::int32_t> seen;
  while (seen.size() < 300) {
    const std::vector<std::int32_t> batch = numbers(stream.next().value());
    seen.insert(seen.end(), batch.begin(), batch.end());
  }
  std::vector<std::vector<std::int32_t>> epochs;
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    epochs.emplace_back(seen.begin() + epoch * count, seen.begin() + (epoch + 1) * count);
    std::vector<std::int32_t> sorted = epochs.back();
    std::sort(sorted.begin(), sorted.end());
    for (std::int32_t i = 0; i < count; ++i) ASSERT_EQ(sorted[static_cast<std::size_t>(i)], i);
    EXPECT_NE(sorted, epochs.back());
  }
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_NE(epochs[1], epochs[2]);
}

TEST(Pairs, FillABatchUntilTheNextOneDoesNotFit) {
  BatchStream stream = pair_batches(counted(500), {.source_rows = 40, .target_rows = 60, .sequence = 10}, kTraining);
  for (int step = 0; step < 30; ++step) {
    const Batch batch = stream.next().value();
    const auto padding_rows = [](const std::vector<std::int32_t>& ids) { return std::count(ids.begin(), ids.end(), kPaddingId); };
    EXPECT_TRUE(padding_rows(batch.source_ids) < 7 || padding_rows(batch.target_in) < 5) << "no pair is longer than 7 and 5 rows";
    EXPECT_EQ(batch.real_tokens, 60 - padding_rows(batch.target_in));
  }
}

TEST(Pairs, LongerThanTheSequenceAreLeftOutAndCounted) {
  BatchStream stream = pair_batches(counted(70), {.source_rows = 20, .target_rows = 20, .sequence = 4}, kTraining);
  EXPECT_EQ(stream.skipped(), 70 - 32);  // 40 have a source of 1 to 4 tokens; 8 of them a target of 4, which takes 5 rows
  for (int step = 0; step < 20; ++step) {
    for (const std::int32_t number : numbers(stream.next().value())) EXPECT_TRUE(number % 7 < 4 && number % 5 < 4) << number;
  }
  EXPECT_TRUE(says(input_error([] { pair_batches(counted(7), {.source_rows = 9, .target_rows = 1, .sequence = 0}, kTraining); }),
                   {"each of the 7 pairs", "batch.sequence = 0"}));
}

TEST(Pairs, ThatFillARowEachStillFit) {
  BatchStream stream = pair_batches(counted(1), {.source_rows = 1, .target_rows = 1, .sequence = 1}, kTraining);
  for (int step = 0; step < 3; ++step) EXPECT_EQ(stream.next().value().real_tokens, 1);
}

TEST(Pairs, ValidateOnceInOrder) {
  BatchStream stream = pair_batches(counted(90), {.source_rows = 30, .target_rows = 30, .sequence = 10}, {});
  std::vector<std::int32_t> seen;
  while (const std::optional<Batch> batch = stream.next()) {
    for (const std::int32_t number : numbers(*batch)) seen.push_back(number);
  }
  ASSERT_EQ(seen.size(), 90u);
  for (std::int32_t i = 0; i < 90; ++i) EXPECT_EQ(seen[static_cast<std::size_t>(i)], i);
  EXPECT_FALSE(stream.next());
}

}  // namespace
}  // namespace tilewave
