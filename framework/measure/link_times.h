// What goes over the links between ranks, measured by all of them together: how long their operations take, and the rate and the latency
// of a link that these times say.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "framework/measure/interleave.h"
#include "framework/tensor/context.h"
#include "kernels/core/trace.h"

namespace tilewave {

struct CollectiveTime {
  std::string_view operation;
  CollectiveWork work;
  Timing timing;  // of the slowest rank
};

// all_reduce, reduce_scatter, all_gather and broadcast of about so many bytes each, in fp32, the context's ranks all at once. Every rank
// calls it, and has the same times.
std::vector<CollectiveTime> measure_collectives(Context& context, std::int64_t bytes, int rounds);

// What a ring's time is made of (kernels/gemm/cost/operation_time.h).
struct LinkFit {
  double bytes_per_s = 0.0;  // of a link, in one direction
  double hop_s = 0.0;
  double error = 0.0;  // the mean of |ln(fitted / measured)|

  double seconds(const CollectiveWork& work, double launch_s) const;
};
// The rate and the latency that are nearest the times, of which `launch_s` is a launch's own.
LinkFit fit_links(std::span<const CollectiveTime> times, double launch_s);

}  // namespace tilewave
