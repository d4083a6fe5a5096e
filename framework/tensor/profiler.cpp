#include "framework/tensor/profiler.h"

#include <utility>

namespace tilewave {

std::vector<ProfiledLaunch> Profiler::take() {
  std::vector<ProfiledLaunch> launches;
  for (Timed& timed : timed_) {
    const double seconds = timed.after.seconds_since(timed.before);
    launches.push_back({.entry = std::move(timed.entry), .seconds = seconds});
  }
  timed_.clear();
  return launches;
}

}  // namespace tilewave
