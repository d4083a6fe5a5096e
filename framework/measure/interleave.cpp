// Screening, then rounds.
#include "framework/measure/interleave.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "kernels/core/error.h"

namespace tilewave {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

struct Contender {
  const Candidate* candidate = nullptr;
  std::int64_t calls = 1;  // of Candidate::launch in a block
  std::size_t turn = 0;
  std::vector<double> seconds = {};  // of one launch, an entry a block

  double block() {  // seconds of one call
    const Clock::time_point start = Clock::now();
    for (std::int64_t i = 0; i < calls; ++i) candidate->launch(turn++);
    if (candidate->wait) candidate->wait();
    return seconds_since(start) / static_cast<double>(calls);
  }
  void measure() { seconds.push_back(block() / static_cast<double>(candidate->launches)); }
  void lengthen(double block_s) {
    for (double taken = block(); taken * static_cast<double>(calls) < block_s; taken = block()) {
      const double wanted = block_s / std::max(taken, 1e-9);
      calls = std::max(calls + 1, static_cast<std::int64_t>(std::ceil(std::min(wanted, 1e6))));
    }
  }
};

// The fastest by short blocks, and those that stay whatever it says, with blocks as long as asked.
std::vector<Contender> screen(const std::vector<Candidate>& candidates, const InterleaveOptions& options,
                              std::map<std::string, double>* screened_s = nullptr) {
  std::vector<Contender> contenders;
  for (const Candidate& candidate : candidates) {
    Contender contender{.candidate = &candidate};
    contender.block();
    contender.lengthen(options.screening_block_s);
    for (int i = 0; i < options.screening_blocks; ++i) contender.measure();
    if (screened_s != nullptr) (*screened_s)[candidate.name] = *std::ranges::min_element(contender.seconds);
    contenders.push_back(std::move(contender));
  }
  std::stable_sort(contenders.begin(), contenders.end(), [](const Contender& a, const Contender& b) {
    return *std::min_element(a.seconds.begin(), a.seconds.end()) < *std::min_element(b.seconds.begin(), b.seconds.end());
  });
  std::size_t rank = 0;
  std::erase_if(contenders, [&](const Contender& contender) { return ++rank > options.finalists && !contender.candidate->always_final; });
  for (Contender& contender : contenders) {
    if (options.block_s > options.screening_block_s) contender.lengthen(options.block_s);
    contender.seconds.clear();
  }
  return contenders;
}

std::vector<Timing> timings(const std::vector<Contender>& contenders) {
  std::vector<Timing> result;
  for (const Contender& contender : contenders) {
    result.push_back({.name = contender.candidate->name,
                      .median_s = quantile(contender.seconds, 0.5),
                      .lower_quartile_s = quantile(contender.seconds, 0.25),
                      .upper_quartile_s = quantile(contender.seconds, 0.75),
                      .rounds_s = contender.seconds});
  }
  std::stable_sort(result.begin(), result.end(), [](const Timing& a, const Timing& b) { return a.median_s < b.median_s; });
  return result;
}

// From both ends inwards, each time from another one on, and there and back: so that each comes after each of the others about as often.
std::vector<std::size_t> order_of_round(int round, std::size_t count) {
  std::vector<std::size_t> order(count);
  const std::size_t from = static_cast<std::size_t>(round) / 2;
  for (std::size_t i = 0; i < count; ++i) order[i] = ((i % 2 == 0 ? i / 2 : count - (i + 1) / 2) + from) % count;
  if (round % 2 == 1) std::reverse(order.begin(), order.end());
  return order;
}

}  // namespace

double quantile(std::vector<double> values, double fraction) {
  TW_CHECK(!values.empty() && fraction >= 0.0 && fraction <= 1.0, "a quantile needs values and a fraction from 0 to 1.");
  std::sort(values.begin(), values.end());
  const double place = fraction * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
}

MedianInterval median_interval(std::vector<double> values) {
  TW_CHECK(!values.empty(), "the interval of a median needs values.");
  std::sort(values.begin(), values.end());
  const std::size_t count = values.size();
  // Of all the ways in which `count` coins can fall, the share that has at most `k` heads, and the share that has exactly k.
  double exactly = std::exp2(-static_cast<double>(count)), at_most = exactly;
  MedianInterval interval = {.low = values.front(), .high = values.back(), .confidence = 1.0 - 2.0 * at_most};
  for (std::size_t k = 1; 2 * (k + 1) <= count + 1; ++k) {
    exactly *= static_cast<double>(count - k + 1) / static_cast<double>(k);
    at_most += exactly;
    if (1.0 - 2.0 * at_most < kConfidence) break;
    interval = {.low = values[k], .high = values[count - 1 - k], .confidence = 1.0 - 2.0 * at_most};
  }
  interval.confidence = std::max(interval.confidence, 0.0);
  return interval;
}

Comparison compare(const std::vector<Candidate>& ours, const std::vector<Candidate>& peers, const InterleaveOptions& options) {
  TW_CHECK(!ours.empty() || !peers.empty(), "there is nothing to measure.");
  const Candidate& load = ours.empty() ? peers.front() : ours.front();
  const Clock::time_point start = Clock::now();
  for (std::size_t turn = 0; seconds_since(start) < options.load_s; ++turn) {
    load.launch(turn);
    if (load.wait) load.wait();
  }

  std::map<std::string, double> screened_s;
  std::vector<Contender> our_finalists = screen(ours, options, &screened_s), peer_finalists = screen(peers, options);
  const auto measure = [&](Contender& contender) {
    if (options.before_block != nullptr) (*options.before_block)();
    for (const Clock::time_point begun = Clock::now(); seconds_since(begun) < options.settle_s;) contender.block();
    contender.measure();
  };
  std::vector<Contender*> all;
  for (std::vector<Contender>* side : {&our_finalists, &peer_finalists}) {
    for (Contender& contender : *side) all.push_back(&contender);
  }
  for (int round = 0; round < options.rounds; ++round) {
    for (const std::size_t which : order_of_round(round, all.size())) measure(*all[which]);
  }
  return {.ours = timings(our_finalists), .peers = timings(peer_finalists), .screened_s = std::move(screened_s)};
}

}  // namespace tilewave
