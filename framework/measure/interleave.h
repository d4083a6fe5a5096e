// Timing that compares: the machine is loaded first, every candidate is screened with short blocks, and the fastest of each side
// take turns in rounds, so that a clock that drifts or a neighbour that comes and goes meets all of them alike; each round in an order
// of its own and each candidate after each of the others, since a GPU at its power limit runs a block faster after one that needed less.
// What counts is the median of the rounds, with its quartiles; a claim is a ratio within one such run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "kernels/core/device.h"

namespace tilewave {

struct Candidate {
  std::string name;
  // Launches `launches` times. `turn` counts up: operands should rotate with it through more than the caches hold.
  std::function<void(std::size_t turn)> launch;
  std::size_t launches = 1;
  bool always_final = false;             // measured to the end whatever the screening says (a library's own choice)
  std::function<void()> wait = nullptr;  // for a block's launches, at its end; absent where launch itself waits
};

struct Timing {
  std::string name;
  double median_s = 0.0;  // of one launch
  double lower_quartile_s = 0.0, upper_quartile_s = 0.0;
  std::vector<double> rounds_s = {};  // in their order: what took turns in a round has its time at the same place
};

// How long a device works before what it does is measured: a GPU's clock and temperature settle in seconds, a CPU's clock at once.
inline double load_s_of(Backend backend) { return backend == Backend::cuda ? 2.0 : 0.1; }

struct InterleaveOptions {
  double load_s = 2.0;    // of work before the first measurement of the process
  double block_s = 0.02;  // launches are timed in blocks at least this long
  double screening_block_s = 0.005;
  int screening_blocks = 2;
  int rounds = 9;
  std::size_t finalists = 3;                            // a side
  const std::function<void()>* before_block = nullptr;  // of a round: to meet each block in the same state
  double settle_s = 0.0;  // of a candidate's own work before each of its blocks of a round: the state that it makes for itself
};

// Timings of each side's finalists, the fastest first. A side may be empty. Of all of ours, by name, what screening saw: the least of a few
// short blocks, which a rank may be read from and no claim.
struct Comparison {
  std::vector<Timing> ours, peers;
  std::map<std::string, double> screened_s = {};
};

Comparison compare(const std::vector<Candidate>& ours, const std::vector<Candidate>& peers, const InterleaveOptions& options = {});

// The value a fraction of the way through the sorted values, between two of them by proportion.
double quantile(std::vector<double> values, double fraction);

// Between which of the values the median of what they are drawn from lies, whatever its distribution: the k-th smallest and the k-th
// largest hold it unless fewer than k values fall on one side of it, whose probability is the binomial one of fair coins. The narrowest
// such interval with kConfidence; the widest with what it has, where so few values cannot have that (of 9 the second and the eighth have
// 96 %, of 5 the first and the last 94 %).
inline constexpr double kConfidence = 0.95;
struct MedianInterval {
  double low = 0.0, high = 0.0;
  double confidence = 0.0;
};
MedianInterval median_interval(std::vector<double> values);

}  // namespace tilewave
