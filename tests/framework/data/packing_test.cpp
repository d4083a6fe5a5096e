// Packing under random lengths: every token in exactly one row, positions from 0, segments that tile the rows, padding rows elsewhere.
#include "framework/data/packing.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <vector>

#include "framework/data/tokenizer.h"
#include "framework/tensor/random.h"
#include "kernels/core/error.h"

namespace tilewave {
namespace {

using Ids = std::vector<std::int32_t>;

TEST(Packer, PlacesPairsOneAfterAnother) {
  Packer packer({.source_rows = 6, .target_rows = 7, .sequence = 4});
  EXPECT_TRUE(packer.empty());
  EXPECT_TRUE(packer.add_pair(Ids{10, 11, 12}, Ids{20, 21}));
  EXPECT_TRUE(packer.add_pair(Ids{13}, Ids{22}));
  EXPECT_FALSE(packer.add_pair(Ids{14, 15, 16}, Ids{})) << "three source rows into two";
  EXPECT_FALSE(packer.add_pair(Ids{14}, Ids{23, 24})) << "three target rows into two";
  EXPECT_EQ(packer.source_rows_left(), 2);
  EXPECT_EQ(packer.target_rows_left(), 2);
  const Batch expected = {.source_ids = {10, 11, 12, 13, -1, -1},
                          .source_positions = {0, 1, 2, 0, 0, 0},
                          .source_lengths = {3, 1},
                          .target_in = {kBeginId, 20, 21, kBeginId, 22, -1, -1},
                          .target_positions = {0, 1, 2, 0, 1, 0, 0},
                          .target_out = {20, 21, kEndId, 22, kEndId, -1, -1},
                          .target_lengths = {3, 2},
                          .real_tokens = 5};
  EXPECT_EQ(std::move(packer).take(), expected);
}

TEST(Packer, CountsLabelsThatCount) {
  Packer packer({.source_rows = 0, .target_rows = 4, .sequence = 4});
  EXPECT_TRUE(packer.add({.source = {}, .target_in = Ids{5, 6, 7}, .target_out = Ids{6, -1, 8}}));
  const Batch batch = std::move(packer).take();
  EXPECT_EQ(batch.real_tokens, 2);
  EXPECT_TRUE(batch.source_ids.empty() && batch.source_lengths.empty());
  EXPECT_EQ(batch.target_out, (Ids{6, -1, 8, -1}));
}

TEST(Packer, RefusesSequencesOfTheWrongModel) {
  Packer encoder({.source_rows = 4, .target_rows = 4, .sequence = 4}), decoder({.source_rows = 0, .target_rows = 4, .sequence = 4});
  EXPECT_THROW(encoder.add_pair(Ids{}, Ids{5}), Error);
  EXPECT_THROW(decoder.add_pair(Ids{5}, Ids{5}), Error);
  EXPECT_THROW(decoder.add({.source = {}, .target_in = Ids{5, 6}, .target_out = Ids{6}}), Error);
  EXPECT_THROW(decoder.add({.source = {}, .target_in = {}, .target_out = {}}), Error);
  EXPECT_THROW(Packer({.source_rows = 4, .target_rows = 0, .sequence = 4}), Error);
  EXPECT_THROW(Packer({.source_rows = 4, .target_rows = 4, .sequence = 0}), Error);
}

TEST(Packer, KeepsItsPromisesUnderRandomLengths) {
  Random random(11);
  for (int round = 0; round < 300; ++round) {
    const BatchShape shape{.source_rows = 1 + random.below(60), .target_rows = 1 + random.below(60), .sequence = 12};
    Packer packer(shape);
    std::vector<Ids> sources, targets;
    std::int32_t token = kSpecialIds;  // every token is another
    for (;;) {
      Ids source(1 + random.below(12)), target(random.below(12));
      for (Ids* side : {&source, &target}) {
        for (std::int32_t& id : *side) id = token++;
      }
      const bool room = static_cast<std::int64_t>(source.size()) <= packer.source_rows_left() &&
                        static_cast<std::int64_t>(target.size()) + 1 <= packer.target_rows_left();
      ASSERT_EQ(packer.add_pair(source, target), room);
      if (!room) break;
      sources.push_back(source);
      targets.push_back(target);
    }
    const Batch batch = std::move(packer).take();
    ASSERT_EQ(batch.source_lengths.size(), sources.size());
    ASSERT_EQ(batch.target_lengths.size(), sources.size());
    ASSERT_LE(static_cast<std::int64_t>(sources.size()), max_sequences(shape));

    const Ids self = attention_segments(source_sequences(batch), source_sequences(batch), max_sequences(shape));
    const Ids cross = attention_segments(target_sequences(batch), source_sequences(batch), max_sequences(shape));
    ASSERT_EQ(cross.size(), 4 * static_cast<std::size_t>(max_sequences(shape)));
    std::vector<int> source_covered(batch.source_ids.size()), target_covered(batch.target_in.size());
    std::int64_t real = 0;
    for (std::size_t i = 0; i < sources.size(); ++i) {
      const auto q_begin = static_cast<std::size_t>(cross[4 * i]), q_length = static_cast<std::size_t>(cross[4 * i + 1]);
      const auto k_begin = static_cast<std::size_t>(cross[4 * i + 2]), k_length = static_cast<std::size_t>(cross[4 * i + 3]);
      ASSERT_EQ(k_length, sources[i].size());
      ASSERT_EQ(q_length, targets[i].size() + 1);
      ASSERT_EQ((Ids{self[4 * i], self[4 * i + 1], self[4 * i + 2], self[4 * i + 3]}),
                (Ids{cross[4 * i + 2], cross[4 * i + 3], cross[4 * i + 2], cross[4 * i + 3]}));
      for (std::size_t t = 0; t < k_length; ++t) {
        EXPECT_EQ(batch.source_ids.at(k_begin + t), sources[i][t]);
        EXPECT_EQ(batch.source_positions.at(k_begin + t), static_cast<std::int32_t>(t));
        ++source_covered.at(k_begin + t);
      }
      for (std::size_t t = 0; t < q_length; ++t) {
        EXPECT_EQ(batch.target_in.at(q_begin + t), t == 0 ? kBeginId : targets[i][t - 1]);
        EXPECT_EQ(batch.target_out.at(q_begin + t), t + 1 == q_length ? kEndId : targets[i][t]);
        EXPECT_EQ(batch.target_positions.at(q_begin + t), static_cast<std::int32_t>(t));
        ++target_covered.at(q_begin + t);
      }
      real += static_cast<std::int64_t>(q_length);
    }
    EXPECT_EQ(batch.real_tokens, real);
    for (std::size_t i = 4 * sources.size(); i < cross.size(); ++i) EXPECT_EQ(cross[i], 0);
    for (std::size_t row = 0; row < source_covered.size(); ++row) {
      ASSERT_LE(source_covered[row], 1);
      if (source_covered[row] == 0) {
        EXPECT_TRUE(batch.source_ids[row] == kPaddingId && batch.source_positions[row] == 0);
      }
    }
    for (std::size_t row = 0; row < target_covered.size(); ++row) {
      ASSERT_LE(target_covered[row], 1);
      if (target_covered[row] == 0) {
        EXPECT_TRUE(batch.target_in[row] == kPaddingId && batch.target_out[row] == kPaddingId && batch.target_positions[row] == 0);
      }
    }
  }
}

TEST(AttentionSegments, RefuseWhatDoesNotFit) {
  const Ids one = {1}, two = {1, 2};
  EXPECT_THROW(attention_segments({.lengths = two}, {.lengths = one}, 4), Error);
  EXPECT_THROW(attention_segments({.lengths = two}, {.lengths = two}, 1), Error);
  EXPECT_EQ(attention_segments({}, {}, 2), Ids(8, 0));
}

}  // namespace
}  // namespace tilewave
