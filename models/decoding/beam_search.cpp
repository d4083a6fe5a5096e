#include "models/decoding/beam_search.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>
#include <utility>

namespace tilewave {
namespace {

struct Extension {
  double log_probability;
  std::int64_t beam;
  std::int32_t id;
};

double log_sum_exp(std::span<const double> logits) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0.0;
  for (const double logit : logits) sum += std::exp(logit - largest);
  return largest + std::log(sum);
}

}  // namespace

BeamSearch::BeamSearch(BeamOptions options) : options_(std::move(options)), beams_(static_cast<std::size_t>(options_.beams)) {
  beams_.front().log_probability = 0.0;
}

std::int32_t BeamSearch::last(std::size_t beam) const { return beams_[beam].ids.empty() ? options_.frame.begin : beams_[beam].ids.back(); }

std::vector<std::int64_t> BeamSearch::advance(std::span<const double> logits, std::int64_t columns) {
  std::vector<Extension> candidates;
  for (std::size_t beam = 0; beam < beams_.size(); ++beam) {
    if (!std::isfinite(beams_[beam].log_probability)) continue;
    const auto row = logits.subspan(beam * static_cast<std::size_t>(columns), static_cast<std::size_t>(options_.vocabulary));
    const double normalizer = log_sum_exp(row);
    for (const std::int32_t id : *options_.ids) {
      candidates.push_back(
          {beams_[beam].log_probability + row[static_cast<std::size_t>(id)] - normalizer, static_cast<std::int64_t>(beam), id});
    }
  }
  // Twice as many as there are beams: at most half of them end here.
  const std::size_t kept = std::min(candidates.size(), 2 * beams_.size());
  std::partial_sort(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(kept), candidates.end(),
                    [](const Extension& a, const Extension& b) {
                      return std::tie(b.log_probability, a.beam, a.id) < std::tie(a.log_probability, b.beam, b.id);
                    });

  std::vector<std::int64_t> parents(beams_.size());
  std::iota(parents.begin(), parents.end(), std::int64_t{0});
  std::vector<Hypothesis> next;
  for (std::size_t rank = 0; rank < kept && next.size() < beams_.size(); ++rank) {
    const Extension& candidate = candidates[rank];
    Hypothesis hypothesis = beams_[static_cast<std::size_t>(candidate.beam)];
    hypothesis.log_probability = candidate.log_probability;
    if (candidate.id == options_.frame.end) {
      if (rank < beams_.size()) finish(std::move(hypothesis));
      continue;
    }
    hypothesis.ids.push_back(candidate.id);
    parents[next.size()] = candidate.beam;
    next.push_back(std::move(hypothesis));
  }
  next.resize(beams_.size());
  beams_ = std::move(next);

  // A longer hypothesis ranks at best as the most probable one would with no further loss, at whichever end of the lengths to come.
  const Hypothesis& likeliest = beams_.front();
  const auto length = static_cast<std::int64_t>(likeliest.ids.size());
  const double reachable = std::max(score(likeliest.log_probability, length + 1), score(likeliest.log_probability, options_.longest));
  const bool hopeless = finished_ >= beams_.size() && best_score_ >= reachable;
  done_ = length >= options_.longest || hopeless || !std::isfinite(likeliest.log_probability) || (beams_.size() == 1 && finished_ > 0);
  if (done_ && finished_ == 0) finish(likeliest);
  return parents;
}

std::vector<std::int32_t> BeamSearch::take_best() { return std::move(best_.ids); }

double BeamSearch::score(double log_probability, std::int64_t length) const {
  return log_probability / std::pow((5.0 + static_cast<double>(length)) / 6.0, options_.length_penalty);
}

void BeamSearch::finish(Hypothesis hypothesis) {
  const double hypothesis_score = score(hypothesis.log_probability, static_cast<std::int64_t>(hypothesis.ids.size()) + 1);
  if (finished_++ == 0 || hypothesis_score > best_score_) {
    best_ = std::move(hypothesis);
    best_score_ = hypothesis_score;
  }
}

}  // namespace tilewave
