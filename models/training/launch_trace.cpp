#include "models/training/launch_trace.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "kernels/core/error.h"

namespace tilewave {
namespace {

using TraceJson = nlohmann::ordered_json;

constexpr int kProcess = 1;
constexpr int kSteps = 1, kLaunches = 2;  // threads, which a viewer shows as tracks

struct TraceSpan {
  std::string name, category;
  int thread;
  double begin_s, end_s;
  TraceJson details = TraceJson::object();
};

TraceJson complete_event(TraceSpan span) {
  return {{"name", std::move(span.name)}, {"cat", std::move(span.category)},          {"ph", "X"},
          {"ts", 1e6 * span.begin_s},     {"dur", 1e6 * (span.end_s - span.begin_s)}, {"pid", kProcess},
          {"tid", span.thread},           {"args", std::move(span.details)}};
}

// "process_name" or "thread_name".
TraceJson name_event(const char* what, int thread, std::string_view name) {
  return {{"name", what}, {"ph", "M"}, {"pid", kProcess}, {"tid", thread}, {"args", {{"name", name}}}};
}

TraceJson details_of(const TraceEntry& entry) {
  TraceJson details = {{"flops", entry.cost.flops}, {"bytes", entry.cost.bytes}};
  if (entry.gemm) {
    const GemmProblem& gemm = *entry.gemm;
    details.update({{"role", name_of(gemm.role)}, {"m", gemm.m}, {"n", gemm.n}, {"k", gemm.k}});
  }
  if (entry.plan) details.update({{"kernel", name_of(entry.plan->composition)}, {"predicted_us", 1e6 * entry.plan->predicted_s}});
  return details;
}

TraceJson launch_event(const ProfiledLaunch& launch) {
  const TraceEntry& entry = launch.entry;
  const std::string role = entry.gemm ? concat(" ", name_of(entry.gemm->role)) : std::string();
  return complete_event({.name = concat(entry.layer, ": ", entry.operation, role),
                         .category = std::string(entry.operation),
                         .thread = kLaunches,
                         .begin_s = launch.begin_s,
                         .end_s = launch.begin_s + launch.seconds,
                         .details = details_of(entry)});
}

}  // namespace

std::string launch_trace(const std::vector<ProfiledLaunch>& launches, std::string_view process) {
  TraceJson events = {name_event("process_name", 0, process), name_event("thread_name", kSteps, "steps"),
                      name_event("thread_name", kLaunches, "launches")};
  for (auto first = launches.begin(); first != launches.end();) {
    const auto last = std::find_if(first, launches.end(), [&](const ProfiledLaunch& one) { return one.step != first->step; });
    const ProfiledLaunch& end = *std::prev(last);
    events.push_back(complete_event({.name = concat("step ", first->step),
                                     .category = "step",
                                     .thread = kSteps,
                                     .begin_s = first->begin_s,
                                     .end_s = end.begin_s + end.seconds}));
    for (; first != last; ++first) events.push_back(launch_event(*first));
  }
  const TraceJson trace = {{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}};
  return trace.dump(-1, ' ', false, TraceJson::error_handler_t::replace) + "\n";
}

}  // namespace tilewave
