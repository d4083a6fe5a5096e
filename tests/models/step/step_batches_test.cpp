// Batches that are kept and batches that are drawn again are the same, step by step, and where a run stands does not depend on either.
#include "models/step/step_batches.h"

#include <gtest/gtest.h>

#include "tests/kernels/support.h"
#include "tests/models/training/small_runs.h"

namespace tilewave {
namespace {

constexpr std::int64_t kPasses = 5;

struct Source {
  explicit Source(std::int64_t most_kept_bytes = kMaxKeptBytes)
      : resolved(resolve(small_recipe({"data.kind=number_names", "data.tokenizer=bytes", "model.vocabulary=260", "model.max_positions=96",
                                       "batch.sequence=96", "batch.source_tokens=200", "batch.target_tokens=200"}))),
        corpus(corpus_of(resolved.recipe)),
        batches(corpus, batch_shape(resolved), kPasses, most_kept_bytes) {}

  std::vector<Batch> step() {
    batches.next_step();
    return all();
  }
  std::vector<Batch> all() {
    const PassBatches current = batches.current();
    std::vector<Batch> all;
    for (std::int64_t pass = 0; pass < current.passes; ++pass) {
      all.push_back(current.of(pass));
      current.meanwhile();
    }
    return all;
  }

  ResolvedRecipe resolved;
  Corpus corpus;
  StepBatches batches;
};

TEST(StepBatches, AreTheStreamsWhetherKeptOrDrawnAgain) {
  Source kept, again(100);
  BatchStream stream = kept.corpus.training(batch_shape(kept.resolved));
  for (int step = 0; step < 4; ++step) {
    std::vector<Batch> expected;
    std::int64_t tokens = 0;
    for (std::int64_t pass = 0; pass < kPasses; ++pass) {
      expected.push_back(*stream.next());
      tokens += expected.back().real_tokens;
    }
    EXPECT_EQ(kept.step(), expected);
    EXPECT_EQ(again.step(), expected);
    EXPECT_EQ(again.all(), expected) << "as often as need be";
    for (Source* one : {&kept, &again}) {
      EXPECT_EQ(one->batches.current().real_tokens, tokens);
      EXPECT_EQ(one->batches.position(), stream.position()) << "what is drawn ahead does not count";
    }
    EXPECT_EQ(kept.batches.kept(), kPasses);
    EXPECT_EQ(again.batches.kept(), 0);
  }
}

TEST(StepBatches, GoOnFromAPosition) {
  Source whole, resumed(100);
  whole.step();
  const DataPosition position = whole.batches.position();
  resumed.step();
  resumed.step();
  resumed.batches.restore(position);
  EXPECT_EQ(resumed.step(), whole.step());
  EXPECT_EQ(resumed.batches.position(), whole.batches.position());
}

TEST(StepBatches, ThatAreNotKeptAreAskedForInOrder) {
  Source again(100);
  again.batches.next_step();
  const PassBatches current = again.batches.current();
  current.of(0);
  testing_support::expect_error([&] { current.of(2); }, "the batch of pass 2 was asked for where that of pass 1 comes next");
}

TEST(RepeatedBatches, TakeTheFirstBatchesInTurns) {
  const ResolvedRecipe resolved = resolve(small_classifier());
  const Corpus corpus(corpus_of(resolved.recipe));
  BatchStream stream = corpus.training(batch_shape(resolved));
  std::vector<Batch> first;
  for (int i = 0; i < 3; ++i) first.push_back(*stream.next());
  EXPECT_NE(first[0], first[1]);
  RepeatedBatches repeated(corpus, batch_shape(resolved), 3);
  for (std::size_t step = 0; step < 5; ++step) {
    const PassBatches batches = repeated.next_step(2);
    ASSERT_EQ(batches.passes, 2);
    EXPECT_EQ(batches.of(0), first[2 * step % 3]);
    EXPECT_EQ(batches.of(1), first[(2 * step + 1) % 3]);
    EXPECT_EQ(batches.real_tokens, batches.of(0).real_tokens + batches.of(1).real_tokens);
    batches.meanwhile();
  }
  EXPECT_THROW(RepeatedBatches(corpus, batch_shape(resolved), 0), Error);
}

}  // namespace
}  // namespace tilewave
