// Pairs from the beginning of the training stream are drawn once and packed anew for each shape; a short stream is cut anew.
#include "models/planning/real_tokens.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <filesystem>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "framework/data/token_file.h"
#include "kernels/core/error.h"
#include "models/recipe/corpus_of.h"
#include "models/step/train_step.h"

namespace tilewave {
namespace {

// A mean is over so many batches, of so many rows together, at least.
constexpr std::int64_t kSampledBatches = 8, kMinSample = 1 << 16;
// Batches of more rows are counted by a part of them.
constexpr std::int64_t kMaxCountedRows = 1 << 17;
// A stream of more windows has so few at an epoch's ends that they do not count. A token has a byte at least, and seldom so many as here.
constexpr std::int64_t kFewWindows = 256, kBytesOfToken = 16;

bool cuts_windows(const DataConfig& data) { return data.kind == DataKind::text || data.kind == DataKind::tokens; }

std::int64_t bytes_of(const std::filesystem::path& source, DataKind kind) {
  std::int64_t bytes = 0;
  for (const std::filesystem::path& file : kind == DataKind::tokens ? files_named(source) : std::vector{source}) {
    bytes += static_cast<std::int64_t>(std::filesystem::file_size(file));
  }
  return bytes;
}

// Means over batches, each of which stands for `times` as much.
class Means {
 public:
  explicit Means(double times = 1.0) : times_(times) {}

  void add(const Batch& batch) {
    const PassSegments segments = segments_of(batch);
    for (std::size_t i = 0; i < kSums.size(); ++i) {
      queries_[i] += (segments.*kSums[i]).queries;
      pairs_[i] += (segments.*kSums[i]).pairs;
    }
    labels_ += batch.real_tokens;
    ++batches_;
  }

  bool empty() const { return batches_ == 0; }
  RealTokens tokens() const { return {.source = mean(queries_[0]), .target = mean(labels_)}; }
  PassSegments segments(PassSegments::Origin origin) const {
    PassSegments means{.origin = origin, .source = {}, .target = {}, .cross = {}};
    for (std::size_t i = 0; i < kSums.size(); ++i) {
      means.*kSums[i] = {.queries = std::llround(mean(queries_[i])), .pairs = std::llround(mean(pairs_[i]))};
    }
    return means;
  }

 private:
  static constexpr std::array kSums = {&PassSegments::source, &PassSegments::target, &PassSegments::cross};
  double mean(std::int64_t sum) const { return times_ * static_cast<double>(sum) / static_cast<double>(batches_); }

  double times_;
  std::array<std::int64_t, 3> queries_ = {}, pairs_ = {};
  std::int64_t labels_ = 0, batches_ = 0;
};

}  // namespace

std::int64_t RealTokens::target_tokens() const { return std::llround(target); }

double growth(const RealTokens& to, const RealTokens& from) {
  const double target = to.target / from.target;
  return from.source > 0.0 ? std::min(target, to.source / from.source) : target;
}

double relative_time(const StepWorth& to, const StepWorth& from) { return to.seconds / from.seconds / growth(to.tokens, from.tokens); }

RealTokenCounter::RealTokenCounter(const Recipe& asked, const Corpus* corpus)
    : asked_(asked.batch), corpus_(corpus), data_(asked.data), vocabulary_(asked.model.vocabulary) {}

RealTokens RealTokenCounter::operator()(const ResolvedRecipe& resolved) {
  const RealTokens tokens = count(resolved).tokens;
  const auto passes = static_cast<double>(resolved.recipe.batch.accumulate);
  return {.source = passes * tokens.source, .target = passes * tokens.target};
}

PassSegments RealTokenCounter::segments(const ResolvedRecipe& resolved) { return count(resolved).segments; }

RealTokenCounter::Counted RealTokenCounter::count(const ResolvedRecipe& resolved) {
  const Recipe& recipe = resolved.recipe;
  const StepShapes& shapes = resolved.shapes;
  const RealTokens rows = {.source = static_cast<double>(shapes.source_rows), .target = static_cast<double>(shapes.target_rows)};
  const Counted as_expected = {.tokens = rows, .segments = resolved.segments};
  const bool named = captions(recipe.model), pairs = packs_pairs(recipe.data) || named,
             windows = cuts_windows(recipe.data) && shapes.source_rows == 0;
  if (!pairs && !windows) return as_expected;
  if (pairs && !files_are_here(recipe)) return {.tokens = in_proportion(shapes), .segments = resolved.segments};
  if (windows && !has_few_windows(recipe)) return as_expected;
  open_corpus(recipe);
  const BatchShape shape = batch_shape(resolved);
  const auto [known, is_new] = counted_.try_emplace({shape.source_rows, shape.target_rows, shape.sequence});
  if (is_new) {
    try {
      known->second = named ? captioned(shape) : pairs ? packed(shape) : Counted{.tokens = rows, .segments = cut(shape)};
    } catch (...) {
      counted_.erase(known);
      throw;
    }
  }
  return known->second;
}

// As far as sizes of files tell, which bound the number of tokens; false where there is nothing to read.
bool RealTokenCounter::has_few_windows(const Recipe& recipe) {
  const std::int64_t few = kFewWindows * std::min(recipe.batch.sequence, recipe.batch.target_tokens);
  if (corpus_ != nullptr && recipe.data == data_ && recipe.model.vocabulary == vocabulary_) return corpus_->facts().training <= few;
  try {
    check_files(recipe);
    return bytes_of(recipe.data.source, recipe.data.kind) <= kBytesOfToken * few;
  } catch (const InputError&) {  // whoever trains on it will say so
    return false;
  }
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
    counted_.clear();
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
  const auto rows = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(std::max(kMinSample, larger))));
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

RealTokenCounter::Counted RealTokenCounter::packed(const BatchShape& whole) {
  const double times = std::max(1.0, static_cast<double>(std::max(whole.source_rows, whole.target_rows)) / kMaxCountedRows);
  const auto part_of = [&](std::int64_t rows) {
    return std::max<std::int64_t>(std::min(rows, whole.sequence), std::llround(static_cast<double>(rows) / times));
  };
  const BatchShape shape{.source_rows = part_of(whole.source_rows), .target_rows = part_of(whole.target_rows), .sequence = whole.sequence};
  BatchStream stream = pair_batches(sample_for(shape), shape, {});
  Means means(times);
  std::optional<Batch> last = stream.next();
  while (std::optional<Batch> next = stream.next()) {  // the last one is cut short where the sample ends
    means.add(*last);
    last = std::move(next);
  }
  if (means.empty()) means.add(*last);
  return {.tokens = means.tokens(), .segments = means.segments(PassSegments::Origin::packed)};
}

// Every batch has as many pictures; captions differ in length.
RealTokenCounter::Counted RealTokenCounter::captioned(const BatchShape& shape) const {
  BatchStream stream = corpus_->training(shape);
  Means means;
  for (std::int64_t batches = 0; batches < kSampledBatches; ++batches) means.add(*stream.next());
  return {.tokens = means.tokens(), .segments = means.segments(PassSegments::Origin::packed)};
}

PassSegments RealTokenCounter::cut(const BatchShape& shape) const {
  BatchStream stream = corpus_->training(shape);
  Means means;
  for (std::int64_t rows = 0, batches = 0; rows < kMinSample || batches < kSampledBatches; rows += shape.target_rows, ++batches) {
    means.add(*stream.next());
  }
  return means.segments(PassSegments::Origin::packed);
}

}  // namespace tilewave
