#include "models/step/step_clock.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>

#include "kernels/gemm/cost/operation_time.h"

namespace tilewave {

double delay_s(const GemmPlan& plan, double busy_s, const DeviceInfo& device) {
  constexpr std::int64_t kSmsOfLinks = 16;  // NCCL's blocks of two H200s: with fewer its rate falls
  const bool leaves_sms = device.backend != Backend::cuda || plan.blocks + kSmsOfLinks <= device.sm_count;
  return leaves_sms ? 0.0 : std::clamp(busy_s, 0.0, plan.predicted_s);
}

void StepClock::launch_gemm(const GemmPlan& plan, const DeviceInfo& device) {
  const double delay = delay_s(plan, links_free_s - now_s, device);
  delayed_s += delay;
  now_s += plan.predicted_s + delay;
}

double StepClock::launch_beside(double seconds) {
  links_s += seconds;
  return links_free_s = std::max(links_free_s, now_s) + seconds;
}

void StepClock::await(double done_s) {
  exposed_s += std::max(0.0, done_s - now_s);
  now_s = std::max(now_s, done_s);
}

void StepClock::repeat(const StepClock& since, double times) {
  const double passed_s = times * (now_s - since.now_s);
  links_s += times * (links_s - since.links_s);
  exposed_s += times * (exposed_s - since.exposed_s);
  delayed_s += times * (delayed_s - since.delayed_s);
  now_s += passed_s;
  links_free_s += passed_s;
}

namespace {

struct Entries {
  std::size_t begin = 0, end = 0;
};

class Replay {
 public:
  Replay(const StepTrace& trace, const DeviceInfo& device) : trace_(trace), device_(device) {}

  StepClock& clock() { return clock_; }

  // What is launched once where passes follow is launched in the last one. What an earlier part launched beside is waited for as a whole.
  void play(const Entries& part, bool last) {
    const std::vector<TraceEntry>& entries = trace_.trace.entries;
    const LaunchesBeside& beside = trace_.beside;
    std::int64_t passes = 1;
    for (std::size_t i = part.begin; i < part.end; ++i) passes = std::max(passes, entries[i].times);
    auto await = std::ranges::lower_bound(beside.awaits, part.begin, {}, &LaunchesBeside::Await::before);
    const double earlier_s = clock_.links_free_s;
    std::map<std::size_t, double> done_s;  // by the place in beside.entries
    for (std::size_t i = part.begin; i <= part.end; ++i) {
      for (; await != beside.awaits.end() && await->before == i; ++await) {
        const auto behind = done_s.lower_bound(await->launched);
        clock_.await(behind == done_s.begin() ? earlier_s : std::prev(behind)->second);
      }
      if (i == part.end || (!last && entries[i].times < passes)) continue;
      const auto place = std::ranges::lower_bound(beside.entries, i);
      if (place == beside.entries.end() || *place != i) {
        launch(entries[i]);
      } else {
        done_s[static_cast<std::size_t>(place - beside.entries.begin())] = clock_.launch_beside(predicted_seconds(entries[i], device_));
      }
    }
  }

 private:
  void launch(const TraceEntry& entry) {
    if (!entry.gemm || !entry.plan) return clock_.launch(predicted_seconds(entry, device_));
    clock_.launch_gemm(*entry.plan, device_);
  }

  const StepTrace& trace_;
  const DeviceInfo& device_;
  StepClock clock_;
};

}  // namespace

StepClock clock_step(const StepTrace& trace, std::int64_t passes, const DeviceInfo& device) {
  constexpr std::int64_t kReplayed = 4;  // later passes; those behind them are like the last of them
  Replay replay(trace, device);
  StepClock& clock = replay.clock();
  replay.play({.begin = 0, .end = trace.later_begin}, true);
  const Entries later = {.begin = trace.later_begin, .end = trace.update_begin};
  for (std::int64_t pass = 1; pass < passes; ++pass) {
    const StepClock before = clock;
    replay.play(later, pass + 1 == passes);
    const std::int64_t left = passes - 1 - pass;
    if (pass < kReplayed || left < 2) continue;
    clock.repeat(before, static_cast<double>(left - 1));
    pass += left - 1;
  }
  replay.play({.begin = trace.update_begin, .end = trace.trace.entries.size()}, true);
  clock.await(clock.links_free_s);
  return clock;
}

}  // namespace tilewave
