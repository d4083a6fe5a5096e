// Beam search over the targets of one source, on the host: what to extend, what has ended, when to stop. Greedy with one beam.
// Hypotheses are ranked by log probability / ((5 + length) / 6)^length_penalty (Wu et al., 2016).
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace tilewave {

// Whether decoding may end or go on with the id: no padding of the vocabulary, no special id but the end.
bool may_produce(std::int32_t id);

class BeamSearch {
 public:
  // Targets have at most `longest` tokens of ids below `vocabulary`.
  BeamSearch(std::int64_t beams, double length_penalty, std::int64_t vocabulary, std::int64_t longest);

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

  double length_penalty_;
  std::int64_t vocabulary_, longest_;
  std::vector<Hypothesis> beams_;
  Hypothesis best_;
  double best_score_ = 0.0;
  std::size_t finished_ = 0;
  bool done_ = false;
};

}  // namespace tilewave
