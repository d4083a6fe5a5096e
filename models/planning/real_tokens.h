// How many rows of a step hold tokens, and in which segments, known before it runs: a step is worth what it trains on, and rows alone are
// no measure of that; attention's work is what its segments hold (pass_segments.h).
//   synthetic, text, tokens   every row holds one
//   number_names, parallel    whole pairs are packed until one side is full: batches of the corpus are packed, as training packs them,
//                             and counted. Rows added to the side that was not full stay padding rows.
//   captions                  batches of the corpus are counted: as many pictures each, and whole captions
//   parallel, no files here   either side is taken to be as full as in the batch asked for, so that the fewer rows decide
// Windows of a token stream are as long as batch.sequence but for an epoch's ends: only a stream that a few of them hold is read and cut.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "framework/data/corpus.h"
#include "framework/data/pairs.h"
#include "models/recipe/recipe.h"

namespace tilewave {

// Of a step, all its passes together: means over batches.
struct RealTokens {
  double source = 0.0;  // 0 without an encoder
  double target = 0.0;  // labels that count

  std::int64_t target_tokens() const;  // rounded
};

// Tokens of `to` for each one of `from`, by the side that has fewer: what grows on one side alone is no gain.
double growth(const RealTokens& to, const RealTokens& from);

// Predicted time per real token, that of `from` being 1.
struct StepWorth {
  double seconds = 0.0;
  RealTokens tokens;
};
double relative_time(const StepWorth& to, const StepWorth& from);

class RealTokenCounter {
 public:
  // The corpus is opened where it is needed first, unless it is given, which must then outlive the counter.
  explicit RealTokenCounter(const Recipe& asked, const Corpus* corpus = nullptr);

  RealTokens operator()(const ResolvedRecipe& resolved);
  PassSegments segments(const ResolvedRecipe& resolved);
  // Why tokens are taken from rows instead of from the corpus; empty: they are not.
  const std::string& estimated() const { return estimated_; }

 private:
  // Of one pass.
  struct Counted {
    RealTokens tokens;
    PassSegments segments;
  };
  Counted count(const ResolvedRecipe& resolved);
  bool files_are_here(const Recipe& recipe);
  bool has_few_windows(const Recipe& recipe);
  RealTokens in_proportion(const StepShapes& shapes) const;
  Counted packed(const BatchShape& whole);
  Counted captioned(const BatchShape& shape) const;
  PassSegments cut(const BatchShape& shape) const;
  void open_corpus(const Recipe& recipe);
  std::shared_ptr<const PairTable> sample_for(const BatchShape& shape);

  BatchConfig asked_;
  std::unique_ptr<const Corpus> opened_;
  const Corpus* corpus_ = nullptr;  // opened_ or given
  DataConfig data_;                 // that corpus_ was opened for, with that vocabulary
  std::int64_t vocabulary_ = 0;
  std::map<std::pair<std::int64_t, std::int64_t>, std::shared_ptr<const PairTable>> samples_;  // of corpus_, by rows and longest sequence
  std::map<std::array<std::int64_t, 3>, Counted> counted_;                                     // of corpus_, by the batch's shape
  std::string estimated_;
};

}  // namespace tilewave
