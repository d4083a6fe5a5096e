// Two steps at a time: the one under way and the one that is drawn ahead of it.
#include "models/step/step_batches.h"

#include <utility>

#include "kernels/core/error.h"

namespace tilewave {
namespace {

std::int64_t bytes_of(const Batch& batch) {
  std::size_t ids = 0;
  for (const std::vector<std::int32_t>* part : {&batch.source_ids, &batch.source_positions, &batch.source_lengths, &batch.target_in,
                                                &batch.target_positions, &batch.target_out, &batch.target_lengths}) {
    ids += part->capacity();
  }
  return static_cast<std::int64_t>(ids * sizeof(std::int32_t) + batch.pixels.capacity());
}

}  // namespace

StepBatches::StepBatches(const Corpus& corpus, const BatchShape& shape, std::int64_t passes, std::int64_t most_kept_bytes)
    : corpus_(&corpus), passes_(passes), most_kept_bytes_(most_kept_bytes), stream_(corpus.training(shape)) {
  restore(stream_.position());
}

void StepBatches::restore(DataPosition position) {
  stream_.restore(position);
  current_ = {.begin = position, .end = position, .kept = {}};
  next_ = {.begin = position, .end = position, .kept = {}};
}

void StepBatches::next_step() {
  draw_ahead();
  current_ = std::exchange(next_, {.begin = next_.end, .end = next_.end, .kept = {}});
  next_again_ = passes_;
}

void StepBatches::draw_ahead() {
  while (next_.passes < passes_) draw_one_ahead();
}

void StepBatches::draw_one_ahead() {
  if (next_.passes == passes_) return;
  Batch batch = *stream_.next();
  next_.end = stream_.position();
  next_.real_tokens += batch.real_tokens;
  ++next_.passes;
  const bool keeps = bytes_of(batch) <= most_kept_bytes_ / passes_;
  if (keeps && std::ssize(next_.kept) == next_.passes - 1) next_.kept.push_back(std::move(batch));
  if (!keeps) next_.kept = {};
}

PassBatches StepBatches::current() {
  return {.passes = passes_,
          .real_tokens = current_.real_tokens,
          .of = [this](std::int64_t pass) -> const Batch& { return batch_of(pass); },
          .meanwhile = [this] { draw_one_ahead(); }};
}

const Batch& StepBatches::batch_of(std::int64_t pass) {
  if (std::ssize(current_.kept) == passes_) return current_.kept[static_cast<std::size_t>(pass)];
  if (pass == 0) {
    if (!again_) again_ = corpus_->training(stream_.shape());
    again_->restore(current_.begin);
    next_again_ = 0;
  }
  TW_CHECK(pass == next_again_, "the batch of pass ", pass, " was asked for where that of pass ", next_again_, " comes next.");
  ++next_again_;
  drawn_again_ = *again_->next();
  return drawn_again_;
}

RepeatedBatches::RepeatedBatches(const Corpus& corpus, const BatchShape& shape, std::int64_t count) {
  TW_CHECK(count > 0, "steps on ", count, " batches cannot be taken; make one at least.");
  BatchStream stream = corpus.training(shape);
  for (std::int64_t i = 0; i < count; ++i) batches_.push_back(*stream.next());
}

PassBatches RepeatedBatches::next_step(std::int64_t passes) {
  const std::int64_t first = next_;
  next_ += passes;
  PassBatches step{.passes = passes, .of = [this, first](std::int64_t pass) -> const Batch& { return at(first + pass); }};
  for (std::int64_t pass = 0; pass < passes; ++pass) step.real_tokens += at(first + pass).real_tokens;
  return step;
}

}  // namespace tilewave
