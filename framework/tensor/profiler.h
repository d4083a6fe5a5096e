// What each launch of a step took. Launches are timed one by one in their queue, so a profiled step is slower than a captured
// one; on a GPU each stands in a range named "layer: operation" as well, for a profiler that watches the process.
#pragma once

#include <deque>
#include <vector>

#include "kernels/core/event.h"
#include "kernels/core/trace.h"

namespace tilewave {

struct ProfiledLaunch {
  TraceEntry entry;
  double seconds = 0.0;
};

class Profiler {
 public:
  template <class Launch>
  void time(Queue& queue, TraceEntry entry, Launch&& launch) {
    Timed& timed = timed_.emplace_back();
    timed.entry = std::move(entry);
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
    Event before, after;
  };
  std::deque<Timed> timed_;
};

}  // namespace tilewave
