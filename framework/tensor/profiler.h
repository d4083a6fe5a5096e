// What each launch of a step took. Launches are timed one by one in their queue, so a profiled step is slower than a captured
// one; on a GPU each stands in a range named "layer: operation" as well, for a profiler that watches the process.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "kernels/core/event.h"
#include "kernels/core/trace.h"

namespace tilewave {

struct ProfiledLaunch {
  TraceEntry entry;
  std::int64_t step = 0;
  double begin_s = 0.0;  // behind the beginning of the first launch
  double seconds = 0.0;
};

class Profiler {
 public:
  void begin_step(std::int64_t step) { step_ = step; }

  template <class Launch>
  void time(Queue& queue, TraceEntry entry, Launch&& launch) {
    Timed& timed = timed_.emplace_back();
    timed.entry = std::move(entry);
    timed.step = step_;
    const NamedRange range(queue, concat(timed.entry.layer, ": ", timed.entry.operation).c_str());
    timed.before.record(queue);
    launch();
    timed.after.record(queue);
  }

  // Waits for the launches so far, and forgets them.
  std::vector<ProfiledLaunch> take();

 private:
  struct Timed {
    TraceEntry entry;
    std::int64_t step = 0;
    Event before, after;
  };
  std::int64_t step_ = 0;
  std::deque<Timed> timed_;
};

}  // namespace tilewave
