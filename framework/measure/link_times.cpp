#include "framework/measure/link_times.h"

#include <algorithm>
#include <cmath>

#include "framework/measure/least_squares.h"
#include "framework/measure/rank_times.h"
#include "kernels/core/graph.h"
#include "kernels/gemm/cost/operation_time.h"
#include "kernels/gemm/tiling.h"
#include "kernels/ops/collective.h"

namespace tilewave {

std::vector<CollectiveTime> measure_collectives(Context& context, std::int64_t bytes, int rounds) {
  const Communicator& ranks = context.ranks();
  const std::int64_t elements = round_up(std::max<std::int64_t>(1, bytes / size_of(DType::f32)), ranks.count * kAlignment);
  const Tensor whole = context.persistent({1, elements}, DType::f32);
  const std::int64_t share = elements / ranks.count;
  const MatrixView all = whole.view(), own = whole.columns(ranks.rank * share, share).view();
  std::vector<CollectiveTime> times;
  // As in a captured step: what a host takes to launch one by one is no time of the links.
  const auto measure = [&](const auto& args) {
    const TraceEntry entry = trace_entry(args);
    context.launch(args);  // buffers and connections are made
    const Graph graph = capture(context.queue(), [&] { context.launch(args); });
    times.push_back({.operation = entry.operation,
                     .work = *entry.collective,
                     .timing = time_together(context, entry.operation, {.rounds = rounds}, [&] { graph.replay(); })});
  };
  measure(AllReduceArgs{.x = all, .ranks = ranks});
  measure(ReduceScatterArgs{.x = all, .y = own, .ranks = ranks});
  measure(AllGatherArgs{.x = own, .y = all, .ranks = ranks});
  measure(BroadcastArgs{.x = all, .root = 0, .ranks = ranks});
  return times;
}

double LinkFit::seconds(const CollectiveWork& work, double launch_s) const {
  const Ring ring = ring_of(work);
  return launch_s + static_cast<double>(ring.hops) * hop_s + ring.link_bytes / bytes_per_s;
}

LinkFit fit_links(std::span<const CollectiveTime> times, double launch_s) {
  TW_CHECK(!times.empty(), "there are no times of ranks to fit links to.");
  const auto fit_of = [](std::span<const double> logarithms) {
    return LinkFit{.bytes_per_s = std::exp(logarithms[0]), .hop_s = std::exp(logarithms[1]), .error = 0.0};
  };
  const auto residuals = [&](std::span<const double> logarithms) {
    const LinkFit links = fit_of(logarithms);
    std::vector<double> result;
    for (const CollectiveTime& time : times) result.push_back(std::log(links.seconds(time.work, launch_s) / time.timing.median_s));
    return result;
  };
  // From the fastest rate and the shortest hop that any time has by itself.
  double rate = 0.0, hop = times.front().timing.median_s;
  for (const CollectiveTime& time : times) {
    const Ring ring = ring_of(time.work);
    rate = std::max(rate, ring.link_bytes / time.timing.median_s);
    hop = std::min(hop, time.timing.median_s / static_cast<double>(std::max<std::int64_t>(1, ring.hops)));
  }
  const std::vector<double> found = fit({.residuals = residuals, .start = {std::log(rate), std::log(hop)}});
  LinkFit links = fit_of(found);
  for (const double residual : residuals(found)) links.error += std::abs(residual) / static_cast<double>(times.size());
  return links;
}

}  // namespace tilewave
