// Pairs from the beginning of the training stream are drawn once and packed anew for each shape.
#include "models/real_tokens.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "kernels/error.h"
#include "models/corpus_of.h"
#include "models/train_step.h"

namespace tilewave {
namespace {

// A mean is over so many batches, of so many rows together, at least.
constexpr std::int64_t kSampledBatches = 8, kLeastSample = 1 << 16;

}  // namespace

bool packs_pairs(const DataConfig& data) { return data.kind == DataKind::number_names || data.kind == DataKind::parallel; }

std::int64_t RealTokens::target_tokens() const { return std::llround(target); }

double growth(const RealTokens& to, const RealTokens& from) {
  const double target = to.target / from.target;
  return from.source > 0.0 ? std::min(target, to.source / from.source) : target;
}

double relative_time(const StepWorth& to, const StepWorth& from) { return to.seconds / from.seconds / growth(to.tokens, from.tokens); }

RealTokenCounter::RealTokenCounter(const Recipe& asked, const Corpus* corpus)
    : asked_(asked.batch), corpus_(corpus), data_(asked.data), vocabulary_(asked.model.vocabulary) {}

RealTokens RealTokenCounter::operator()(const ResolvedRecipe& resolved) {
  const StepShapes& shapes = resolved.shapes;
  RealTokens tokens = {.source = static_cast<double>(shapes.source_rows), .target = static_cast<double>(shapes.target_rows)};
  if (packs_pairs(resolved.recipe.data)) tokens = files_are_here(resolved.recipe) ? packed(resolved) : in_proportion(shapes);
  const auto passes = static_cast<double>(resolved.recipe.batch.accumulate);
  return {.source = passes * tokens.source, .target = passes * tokens.target};
}

bool RealTokenCounter::files_are_here(const Recipe& recipe) {
  try {
    if (corpus_ == nullptr || recipe.data != data_) check_files(recipe);
    return true;
  } catch (const InputError& error) {
    estimated_ = error.what();
    return false;
  }
}

RealTokens RealTokenCounter::in_proportion(const StepShapes& shapes) const {
  const RealTokens asked = {.source = static_cast<double>(asked_.source_tokens), .target = static_cast<double>(asked_.target_tokens)};
  const double part = growth({.source = static_cast<double>(shapes.source_rows), .target = static_cast<double>(shapes.target_rows)}, asked);
  return {.source = part * asked.source, .target = part * asked.target};
}

void RealTokenCounter::open_corpus(const Recipe& recipe) {
  if (recipe.data != data_ || recipe.model.vocabulary != vocabulary_) {
    corpus_ = nullptr;
    samples_.clear();
  }
  if (corpus_ != nullptr) return;
  opened_ = std::make_unique<const Corpus>(corpus_of(recipe));
  corpus_ = opened_.get();
  data_ = recipe.data;
  vocabulary_ = recipe.model.vocabulary;
}

// Pairs of the training stream, as many as fill kSampledBatches of the shape and a power of two: what is counted depends on the shape
// alone, and shapes near one another are counted over the same pairs.
std::shared_ptr<const PairTable> RealTokenCounter::sample_for(const BatchShape& shape) {
  const std::int64_t larger = kSampledBatches * std::max(shape.source_rows, shape.target_rows);
  const auto rows = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(std::max(kLeastSample, larger))));
  std::shared_ptr<const PairTable>& sample = samples_[{rows, shape.sequence}];
  if (sample != nullptr) return sample;
  const Batch batch = *corpus_->training({.source_rows = rows, .target_rows = rows, .sequence = shape.sequence}).next();
  PairTable pairs;
  std::span<const std::int32_t> sources = batch.source_ids, targets = batch.target_in;
  for (std::size_t i = 0; i < batch.source_lengths.size(); ++i) {
    const auto source = static_cast<std::size_t>(batch.source_lengths[i]), target = static_cast<std::size_t>(batch.target_lengths[i]);
    pairs.add(sources.first(source), targets.subspan(1, target - 1));  // without its begin
    sources = sources.subspan(source);
    targets = targets.subspan(target);
  }
  sample = std::make_shared<const PairTable>(std::move(pairs));
  return sample;
}

RealTokens RealTokenCounter::packed(const ResolvedRecipe& resolved) {
  open_corpus(resolved.recipe);
  const BatchShape shape = batch_shape(resolved);
  BatchStream stream = pair_batches(sample_for(shape), shape, {});
  RealTokens sum, last;
  double batches = 0.0;
  while (const std::optional<Batch> batch = stream.next()) {  // the last one is cut short where the sample ends
    sum = {.source = sum.source + last.source, .target = sum.target + last.target};
    last = {.source = static_cast<double>(std::accumulate(batch->source_lengths.begin(), batch->source_lengths.end(), std::int64_t{0})),
            .target = static_cast<double>(batch->real_tokens)};
    batches += 1.0;
  }
  if (batches < 2.0) return last;
  return {.source = sum.source / (batches - 1.0), .target = sum.target / (batches - 1.0)};
}

}  // namespace tilewave
