// The batches of a training run, step by step. A step is told its real tokens before its first pass, so all its batches are drawn once to
// be counted; those of a few passes are kept until they are used, those of many are drawn again, so that memory does not grow with
// batch.accumulate.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "framework/data/corpus.h"
#include "models/step/train_step.h"

namespace tilewave {

inline constexpr std::int64_t kMaxKeptBytes = std::int64_t{1} << 26;  // of a step's batches in the host's memory

class StepBatches {
 public:
  // The corpus outlives this.
  StepBatches(const Corpus& corpus, const BatchShape& shape, std::int64_t passes, std::int64_t most_kept_bytes = kMaxKeptBytes);

  void restore(DataPosition position);

  // Goes on to the next step, whose batches are then there to be asked for, in order and as often as need be.
  void next_step();
  PassBatches current();
  DataPosition position() const { return current_.end; }  // behind the current step, which there may not be yet

  // Draws the step after the current one while somebody waits: a batch of it, or what is left.
  void draw_one_ahead();
  void draw_ahead();

  // Gives their memory back once no step follows.
  void drop() { current_ = next_ = {}; }

  std::int64_t skipped() const { return stream_.skipped(); }
  std::int64_t kept() const { return static_cast<std::int64_t>(current_.kept.size()); }  // of the current step's batches

 private:
  struct Drawn {
    DataPosition begin, end;
    std::int64_t passes = 0, real_tokens = 0;
    std::vector<Batch> kept;  // all of them or none
  };
  const Batch& batch_of(std::int64_t pass);

  const Corpus* corpus_;
  std::int64_t passes_, most_kept_bytes_;
  BatchStream stream_;
  Drawn current_, next_;
  std::optional<BatchStream> again_;  // of the current step's, which pass comes next
  std::int64_t next_again_ = 0;
  Batch drawn_again_;
};

// A few batches that are made once and taken in turns: steps on them are timed without what makes batches.
class RepeatedBatches {
 public:
  RepeatedBatches(const Corpus& corpus, const BatchShape& shape, std::int64_t count);

  // Of the next step, as many as it has passes; they are there as long as this is.
  PassBatches next_step(std::int64_t passes);

 private:
  const Batch& at(std::int64_t index) const { return batches_[static_cast<std::size_t>(index) % batches_.size()]; }

  std::vector<Batch> batches_;
  std::int64_t next_ = 0;  // of all that steps have had
};

}  // namespace tilewave
