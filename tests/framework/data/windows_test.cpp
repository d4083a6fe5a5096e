// Windows of a token stream: an epoch predicts every token once, rows are filled exactly, validation has no cuts.
#include "framework/data/windows.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>
#include <set>
#include <vector>

#include "kernels/core/error.h"

namespace tilewave {
namespace {

constexpr Pass kTraining{.kind = Pass::Kind::shuffled_epochs, .seed = 3};

// Token i of the stream is i, so that a label says where it came from.
TokenStream counting(std::int64_t size) {
  return {.size = size, .read = [size](std::int64_t first, std::span<std::int32_t> ids) {
            ASSERT_LE(first + static_cast<std::int64_t>(ids.size()), size);
            std::iota(ids.begin(), ids.end(), static_cast<std::int32_t>(first));
          }};
}

TEST(Windows, FillEveryRowOfATrainingBatch) {
  for (const std::int64_t rows : {1, 7, 64, 4'095}) {
    for (const std::int64_t size : {2, 3, 50, 1'000}) {
      BatchStream stream = window_batches(counting(size), {.source_rows = 0, .target_rows = rows, .sequence = 16}, kTraining);
      for (int step = 0; step < 5; ++step) {
        const Batch batch = stream.next().value();
        EXPECT_EQ(batch.real_tokens, rows);
        EXPECT_EQ(std::accumulate(batch.target_lengths.begin(), batch.target_lengths.end(), std::int64_t{0}), rows);
        EXPECT_LE(*std::max_element(batch.target_lengths.begin(), batch.target_lengths.end()), 16);
        for (std::size_t row = 0; row < batch.target_in.size(); ++row) EXPECT_EQ(batch.target_out[row], batch.target_in[row] + 1);
      }
    }
  }
}

TEST(Windows, PredictEveryTokenOnceAnEpoch) {
  const std::int64_t size = 1 + 16 * 40;  // one row a batch less than a window would cut it: rows = sequence keeps windows whole
  BatchStream stream = window_batches(counting(size), {.source_rows = 0, .target_rows = 1, .sequence = 1}, kTraining);
  for (int epoch = 0; epoch < 2; ++epoch) {
    std::set<std::int32_t> labels;
    for (std::int64_t i = 0; i + 1 < size; ++i) labels.insert(stream.next().value().target_out[0]);
    EXPECT_EQ(static_cast<std::int64_t>(labels.size()), size - 1);
  }
}

// What a full batch cuts off comes later in the same epoch: whatever the sizes, the labels of one epoch are all labels, each once.
TEST(Windows, SeeEveryTokenOnceAnEpochWhateverTheRows) {
  struct Sizes {
    std::int64_t tokens, rows, sequence;
  };
  for (const Sizes& sizes : {Sizes{20'001, 1'100, 1'024}, Sizes{20'001, 1'024, 1'024}, Sizes{5'000, 1'500, 1'024}, Sizes{641, 64, 16},
                             Sizes{641, 65, 16}, Sizes{641, 7, 16}, Sizes{100, 33, 16}, Sizes{30, 200, 16}, Sizes{2, 3, 2}}) {
    const std::int64_t labels_an_epoch = sizes.tokens - 1;
    BatchStream stream =
        window_batches(counting(sizes.tokens), {.source_rows = 0, .target_rows = sizes.rows, .sequence = sizes.sequence}, kTraining);
    std::vector<std::int32_t> labels;
    while (std::ssize(labels) < 3 * labels_an_epoch) {
      const Batch batch = stream.next().value();
      EXPECT_EQ(batch.real_tokens, sizes.rows);
      labels.insert(labels.end(), batch.target_out.begin(), batch.target_out.end());
    }
    std::vector<std::int32_t> all(static_cast<std::size_t>(labels_an_epoch));
    std::iota(all.begin(), all.end(), 1);
    for (int epoch = 0; epoch < 3; ++epoch) {
      const auto begin = labels.begin() + epoch * labels_an_epoch;
      std::vector<std::int32_t> seen(begin, begin + labels_an_epoch);
      std::sort(seen.begin(), seen.end());
      ASSERT_EQ(seen, all) << sizes.tokens << " tokens, " << sizes.rows << " rows of " << sizes.sequence << ", epoch " << epoch;
    }
  }
}

// Batches of whole windows stay so but where an epoch's short ones are.
TEST(Windows, StayWholeWhereBatchesHoldWholeOnes) {
  BatchStream stream = window_batches(counting(1 + 16 * 100 + 5), {.source_rows = 0, .target_rows = 32, .sequence = 16}, kTraining);
  std::int64_t cut = 0, batches = 0;
  for (; stream.position().epoch < 4; ++batches) {
    const Batch batch = stream.next().value();
    for (const std::int32_t length : batch.target_lengths) cut += length < 16 ? 1 : 0;
  }
  EXPECT_GT(batches, 4 * 45);
  EXPECT_LE(cut, 4 * 10);
}

TEST(Windows, GoOnFromEveryPosition) {
  for (const std::int64_t rows : {7, 24, 33, 100}) {
    const auto fresh = [&] { return window_batches(counting(150), {.source_rows = 0, .target_rows = rows, .sequence = 16}, kTraining); };
    BatchStream whole = fresh();
    std::vector<Batch> batches;
    std::vector<DataPosition> positions;
    for (int i = 0; i < 80; ++i) {
      positions.push_back(whole.position());
      batches.push_back(whole.next().value());
    }
    BatchStream back_and_forth = fresh();
    for (const std::size_t at : {79u, 0u, 41u, 40u, 3u, 77u, 20u, 21u, 22u}) {
      BatchStream resumed = fresh();
      for (BatchStream* stream : {&resumed, &back_and_forth}) {
        stream->restore(positions[at]);
        EXPECT_EQ(stream->next().value(), batches[at]) << rows << " rows, batch " << at;
      }
    }
  }
}

// As an earlier tilewave's epochs went: each batch begins with a whole window, and what the batch before cut off is never seen.
TEST(Windows, OfAnOlderRunGoOnAsTheyBegan) {
  constexpr std::int64_t kTokens = 20'001, kRows = 1'100, kSequence = 1'024;
  BatchStream stream = window_batches(counting(kTokens), {.source_rows = 0, .target_rows = kRows, .sequence = kSequence}, kTraining);
  stream.restore({.epoch = 0, .next = 0, .rows_before = std::nullopt});
  std::set<std::int32_t> seen;
  std::set<std::int32_t> begins;
  std::uint64_t windows = 0;
  while (stream.position().epoch == 0) {
    const Batch batch = stream.next().value();
    EXPECT_EQ(stream.position().rows_before, std::nullopt);
    if (stream.position().epoch > 0) break;
    windows += batch.target_lengths.size();
    EXPECT_EQ(stream.position().next, windows);
    seen.insert(batch.target_out.begin(), batch.target_out.end());
    std::int64_t row = 0;
    for (const std::int32_t length : batch.target_lengths) {
      begins.insert(batch.target_in[static_cast<std::size_t>(row)] % kSequence);
      row += length;
    }
  }
  EXPECT_LE(begins.size(), 2u) << "of the first window, and of all others";
  EXPECT_LT(std::ssize(seen), kTokens * 8 / 10);
}

TEST(Windows, APositionPastTheEpochStartsTheNext) {
  BatchStream stream = window_batches(counting(100), {.source_rows = 0, .target_rows = 33, .sequence = 16}, kTraining);
  stream.restore({.epoch = 2, .next = std::uint64_t{1} << 60, .rows_before = 1'000});
  EXPECT_EQ(stream.next()->real_tokens, 33);
  EXPECT_EQ(stream.position().epoch, 3u);
}

TEST(Windows, CutEachEpochAtAnotherOffset) {
  std::set<std::int32_t> first_ids_of_epochs;
  const BatchShape shape{.source_rows = 0, .target_rows = 16, .sequence = 16};
  std::set<std::int32_t> residues;
  for (std::uint64_t epoch = 0; epoch < 20; ++epoch) {
    BatchStream stream = window_batches(counting(16 * 100 + 1), shape, kTraining);
    std::set<std::int32_t> of_this_epoch;
    for (std::uint64_t next = 1; next < 5; ++next) {
      stream.restore({.epoch = epoch, .next = next});
      const Batch batch = stream.next().value();
      if (batch.target_lengths.size() == 1 && batch.target_in[0] > 0) of_this_epoch.insert(batch.target_in[0] % 16);
    }
    EXPECT_EQ(of_this_epoch.size(), 1u) << "windows of one epoch are disjoint";
    residues.insert(of_this_epoch.begin(), of_this_epoch.end());
  }
  EXPECT_GT(residues.size(), 8u);
}

TEST(Windows, AreDisjointWithinAnEpochWhateverTheSizes) {
  for (const std::int64_t size : {5, 17, 33, 100, 641}) {
    for (const std::int64_t sequence : {3, 16, 700}) {
      for (std::uint64_t epoch = 0; epoch < 6; ++epoch) {
        // As many rows as the epoch has: its windows fill them one by one, and only then the next epoch starts.
        BatchStream stream = window_batches(counting(size), {.source_rows = 0, .target_rows = size - 1, .sequence = sequence}, kTraining);
        stream.restore({.epoch = epoch, .next = 0});
        Batch batch = stream.next().value();
        std::sort(batch.target_out.begin(), batch.target_out.end());
        for (std::int64_t i = 0; i + 1 < size; ++i)
          ASSERT_EQ(batch.target_out[static_cast<std::size_t>(i)], i + 1) << size << " " << sequence;
      }
    }
  }
}

TEST(Windows, ValidateEveryTokenOnceInOrderWhateverTheRows) {
  for (const std::int64_t rows : {16, 17, 31, 40, 1'000}) {
    BatchStream stream = window_batches(counting(101), {.source_rows = 0, .target_rows = rows, .sequence = 16}, {});
    std::vector<std::int32_t> labels, lengths;
    while (const std::optional<Batch> batch = stream.next()) {
      for (std::int32_t length : batch->target_lengths) lengths.push_back(length);
      std::copy_if(batch->target_out.begin(), batch->target_out.end(), std::back_inserter(labels),
                   [](std::int32_t label) { return label >= 0; });
    }
    std::vector<std::int32_t> expected(100);
    std::iota(expected.begin(), expected.end(), 1);
    EXPECT_EQ(labels, expected);
    EXPECT_EQ(lengths, (std::vector<std::int32_t>{16, 16, 16, 16, 16, 16, 4}));
    EXPECT_FALSE(stream.next());
  }
}

TEST(Windows, NeedSomethingToPredict) {
  EXPECT_THROW(window_batches(counting(1), {.source_rows = 0, .target_rows = 4, .sequence = 4}, kTraining), Error);
}

}  // namespace
}  // namespace tilewave
