#include "framework/tensor/profiler.h"

#include <utility>

namespace tilewave {

std::vector<ProfiledLaunch> Profiler::take() {
  std::vector<ProfiledLaunch> launches;
  for (Timed& timed : timed_) {
    const double begin = timed.before.seconds_since(timed_.front().before), seconds = timed.after.seconds_since(timed.before);
    launches.push_back({.entry = std::move(timed.entry), .step = timed.step, .begin_s = begin, .seconds = seconds});
  }
  timed_.clear();
  return launches;
}

}  // namespace tilewave
