// Shares of a batch: every sequence once, in order, where its rows are a multiple of four apart from the whole's.
#include "framework/data/batch_shares.h"

#include <gtest/gtest.h>
#include <numeric>

#include "framework/tensor/random.h"
#include "kernels/core/error.h"

namespace tilewave {
namespace {

using Ids = std::vector<std::int32_t>;

// A batch of random sentences, packed until one does not fit.
Batch packed_sentences(const BatchShape& shape, Random& random) {
  Packer packer(shape);
  for (;;) {
    const auto length = [&] { return 1 + random.below(static_cast<std::uint32_t>(shape.sequence)); };
    Ids source(shape.source_rows > 0 ? length() : 0), in(length()), out;
    for (Ids* const ids : {&source, &in}) {
      for (std::int32_t& id : *ids) id = static_cast<std::int32_t>(random.below(1000));
    }
    out = in;
    out.back() = -1;  // counts nothing
    if (!packer.add({.source = source, .target_in = in, .target_out = out})) return std::move(packer).take();
  }
}

void expect_part(const Ids& whole, const Ids& part, std::int64_t first, std::int64_t rows, std::int64_t begin) {
  for (std::int64_t row = 0; row < rows; ++row) {
    EXPECT_EQ(part[static_cast<std::size_t>(begin + row)], whole[static_cast<std::size_t>(first + begin + row)]) << "row " << row;
  }
}

// All shares of all rounds are the whole; what is no sequence of a share is padding.
void expect_whole(const Batch& whole, const BatchShape& share, std::int64_t ranks) {
  Ids source_lengths, target_lengths;
  std::int64_t tokens = 0;
  for (const std::vector<BatchShare>& round : shares_of(whole, share, ranks)) {
    ASSERT_EQ(std::ssize(round), ranks);
    for (const BatchShare& part : round) {
      const Batch& batch = part.batch;
      EXPECT_EQ(part.first_source_row % 4, 0);
      EXPECT_EQ(part.first_target_row % 4, 0);
      ASSERT_EQ(std::ssize(batch.source_ids), share.source_rows);
      ASSERT_EQ(std::ssize(batch.target_in), share.target_rows);
      const std::int64_t sources = std::accumulate(batch.source_lengths.begin(), batch.source_lengths.end(), std::int64_t{0});
      const std::int64_t targets = std::accumulate(batch.target_lengths.begin(), batch.target_lengths.end(), std::int64_t{0});
      expect_part(whole.source_ids, batch.source_ids, part.first_source_row, sources, batch.first_source);
      expect_part(whole.target_in, batch.target_in, part.first_target_row, targets, batch.first_target);
      expect_part(whole.target_out, batch.target_out, part.first_target_row, targets, batch.first_target);
      expect_part(whole.target_positions, batch.target_positions, part.first_target_row, targets, batch.first_target);
      EXPECT_EQ(std::count(batch.target_in.begin(), batch.target_in.end(), kPaddingId), share.target_rows - targets);
      EXPECT_EQ(std::count(batch.source_ids.begin(), batch.source_ids.end(), kPaddingId), share.source_rows - sources);
      source_lengths.insert(source_lengths.end(), batch.source_lengths.begin(), batch.source_lengths.end());
      target_lengths.insert(target_lengths.end(), batch.target_lengths.begin(), batch.target_lengths.end());
      tokens += batch.real_tokens;
    }
  }
  EXPECT_EQ(source_lengths, whole.source_lengths);
  EXPECT_EQ(target_lengths, whole.target_lengths);
  EXPECT_EQ(tokens, whole.real_tokens);
}

TEST(BatchShares, HaveEverySequenceOnce) {
  Random random(random_key(7, 's'));
  for (const BatchShape& shape : {BatchShape{.source_rows = 517, .target_rows = 403, .sequence = 37},
                                  BatchShape{.source_rows = 0, .target_rows = 256, .sequence = 16},
                                  BatchShape{.source_rows = 64, .target_rows = 64, .sequence = 64}}) {
    for (const std::int64_t ranks : {1, 2, 3, 4, 7}) {
      SCOPED_TRACE(testing::Message() << shape.target_rows << " rows on " << ranks << " ranks");
      const Batch whole = packed_sentences(shape, random);
      expect_whole(whole, share_shape(shape, ranks, SequenceLengths::any), ranks);
    }
  }
}

TEST(BatchShares, OfOneRankAreTheBatchItself) {
  Random random(random_key(7, 'o'));
  const BatchShape shape{.source_rows = 128, .target_rows = 100, .sequence = 20};
  const Batch whole = packed_sentences(shape, random);
  EXPECT_EQ(share_shape(shape, 1, SequenceLengths::any), shape);
  const std::vector<std::vector<BatchShare>> rounds = shares_of(whole, shape, 1);
  ASSERT_EQ(rounds.size(), 1u);
  EXPECT_EQ(rounds[0][0], (BatchShare{.batch = whole}));
}

// Windows as long as the shape allows: a rank's rows are its windows' and no more, and one round is enough.
TEST(BatchShares, OfWholeWindowsNeedNoRoom) {
  const BatchShape shape{.source_rows = 0, .target_rows = 12 * 32, .sequence = 32};
  Packer packer(shape);
  const Ids window(32, 5);
  while (packer.add({.source = {}, .target_in = window, .target_out = window})) {
  }
  const Batch whole = std::move(packer).take();
  for (const std::int64_t ranks : {2, 3, 4, 6}) {
    const BatchShape share = share_shape(shape, ranks, SequenceLengths::whole);
    EXPECT_EQ(share.target_rows, 12 / ranks * 32);
    EXPECT_EQ(shares_of(whole, share, ranks).size(), 1u);
    expect_whole(whole, share, ranks);
  }
  EXPECT_EQ(share_shape(shape, 5, SequenceLengths::whole).target_rows, 3 * 32);  // three, three, three, three and none
  expect_whole(whole, share_shape(shape, 5, SequenceLengths::whole), 5);
}

// Rows that hold exactly their part, and sentences that do not fit it: another round.
TEST(BatchShares, TakeAnotherRoundWhereTheyDoNotFit) {
  const BatchShape shape{.source_rows = 0, .target_rows = 60, .sequence = 20};
  Packer packer(shape);
  const Ids words(20, 3);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(packer.add({.source = {}, .target_in = words, .target_out = words}));
  const Batch whole = std::move(packer).take();
  const BatchShape share{.source_rows = 0, .target_rows = 30, .sequence = 20};
  const std::vector<std::vector<BatchShare>> rounds = shares_of(whole, share, 2);
  ASSERT_EQ(rounds.size(), 2u);
  EXPECT_EQ(rounds[1][0].batch.target_lengths, Ids{20});
  EXPECT_TRUE(rounds[1][1].batch.target_lengths.empty());
  expect_whole(whole, share, 2);
  EXPECT_THROW(shares_of(whole, {.source_rows = 0, .target_rows = 19, .sequence = 20}, 2), Error);
}

TEST(BatchShares, OfAnEmptyBatchAreEmpty) {
  const BatchShape shape{.source_rows = 0, .target_rows = 8, .sequence = 4};
  const std::vector<std::vector<BatchShare>> rounds = shares_of(Packer(shape).take(), shape, 2);
  ASSERT_EQ(rounds.size(), 1u);
  EXPECT_EQ(rounds[0][1].batch.real_tokens, 0);
}

}  // namespace
}  // namespace tilewave
