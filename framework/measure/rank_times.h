// Timing of what ranks do together: they begin a block of launches at once, and a block takes what its slowest rank takes.
#pragma once

#include <functional>
#include <string_view>

#include "framework/measure/interleave.h"
#include "framework/tensor/context.h"

namespace tilewave {

struct RankTimesOptions {
  int rounds = 9;
  double load_s = 0.0;    // of launches before the first block
  double block_s = 0.01;  // launches are timed in blocks at least this long
};

// Every rank of the context calls it, and launches as often as the others. launch() need not wait. Seconds of one launch.
Timing time_together(Context& context, std::string_view name, const RankTimesOptions& options, const std::function<void()>& launch);

}  // namespace tilewave
