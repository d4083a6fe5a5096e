// Beam search over the targets of one source, on the host: what to extend, what has ended, when to stop. Greedy with one beam.
// Hypotheses are ranked by log probability / ((5 + length) / 6)^length_penalty (Wu et al., 2016).
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "framework/data/special_ids.h"

namespace tilewave {

struct BeamOptions {
  std::int64_t beams = 1;
  double length_penalty = 0.6;
  std::int64_t vocabulary = 0;                           // whose ids the logits are normalised over
  std::int64_t longest = 0;                              // tokens of a target
  PairFrame frame;                                       // what a target is begun with and ended by
  std::shared_ptr<const std::vector<std::int32_t>> ids;  // that may end or extend one, ascending
};

class BeamSearch {
 public:
  explicit BeamSearch(BeamOptions options);

  bool done() const { return done_; }
  std::int32_t last(std::size_t beam) const;  // the token to extend it by the next of; the begin id at first

  // Extends every beam by one token. logits: [beams, columns], columns >= vocabulary. Returns which former beam each new one continues.
  // Not to be called when done().
  std::vector<std::int64_t> advance(std::span<const double> logits, std::int64_t columns);

  std::vector<std::int32_t> take_best();  // without begin and end; where none has ended, the most probable of the longest

 private:
  struct Hypothesis {
    std::vector<std::int32_t> ids;
    double log_probability = -std::numeric_limits<double>::infinity();
  };

  double score(double log_probability, std::int64_t length) const;
  void finish(Hypothesis hypothesis);

  BeamOptions options_;
  std::vector<Hypothesis> beams_;
  Hypothesis best_;
  double best_score_ = 0.0;
  std::size_t finished_ = 0;
  bool done_ = false;
};

}  // namespace tilewave
