// Windows of a token stream: an epoch predicts every token once, rows are filled exactly, validation has no cuts.
#include "framework/data/windows.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>
#include <set>

#include "kernels/error.h"

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
