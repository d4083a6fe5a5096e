#include "framework/measure/rank_times.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>

#include "framework/distributed/exchange_values.h"

namespace tilewave {
namespace {

double slowest(Context& context, double seconds) {
  const std::vector<double> all = exchange_values(context.queue(), context.ranks(), seconds);
  return *std::max_element(all.begin(), all.end());
}

// Of one launch, the slowest rank's; the exchange before it is where the ranks meet.
double timed(Context& context, int launches, const std::function<void()>& launch) {
  (void)slowest(context, 0.0);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < launches; ++i) launch();
  synchronize(context.queue());
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return slowest(context, seconds) / launches;
}

}  // namespace

Timing time_together(Context& context, std::string_view name, const RankTimesOptions& options, const std::function<void()>& launch) {
  constexpr double kMaxLaunches = 1000.0;
  (void)timed(context, 1, launch);  // buffers and connections are made
  const double once = timed(context, 1, launch);
  for (double loaded_s = 0.0; loaded_s < options.load_s;) loaded_s += timed(context, 1, launch);
  const int launches = static_cast<int>(std::clamp(std::ceil(options.block_s / once), 1.0, kMaxLaunches));
  Timing timing{.name = std::string(name)};
  for (int round = 0; round < options.rounds; ++round) timing.rounds_s.push_back(timed(context, launches, launch));
  timing.median_s = quantile(timing.rounds_s, 0.5);
  timing.lower_quartile_s = quantile(timing.rounds_s, 0.25);
  timing.upper_quartile_s = quantile(timing.rounds_s, 0.75);
  return timing;
}

}  // namespace tilewave
