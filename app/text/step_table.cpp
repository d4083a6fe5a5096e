#include "app/text/step_table.h"

#include <algorithm>
#include <cmath>
#include <ostream>

#include "app/text/gemm_table.h"
#include "app/text/table.h"
#include "app/text/units.h"
#include "kernels/gemm/cost/cost_model.h"
#include "models/planning/plan.h"

namespace tilewave {
namespace {

// What launches of one operation, in layers of one name, came to.
struct ProfileLine {
  std::string layer, operation;
  std::int64_t count = 0;
  double seconds = 0.0, predicted_s = 0.0;
  Cost cost;
};

std::vector<ProfileLine> profile_lines(const std::vector<ProfiledLaunch>& launches) {
  std::vector<ProfileLine> lines;
  for (const ProfiledLaunch& launch : launches) {
    const TraceEntry& entry = launch.entry;
    const std::string layer = without_numbers(entry.layer);
    const std::string operation = entry.gemm ? concat(entry.operation, " ", name_of(entry.gemm->role)) : std::string(entry.operation);
    auto line = std::ranges::find_if(lines, [&](const ProfileLine& one) { return one.layer == layer && one.operation == operation; });
    if (line == lines.end()) line = lines.insert(lines.end(), {.layer = layer, .operation = operation, .cost = {}});
    line->count += 1;
    line->seconds += launch.seconds;
    line->predicted_s += entry.plan ? entry.plan->predicted_s : 0.0;
    line->cost.flops += entry.cost.flops;
    line->cost.bytes += entry.cost.bytes;
  }
  std::ranges::stable_sort(lines, std::ranges::greater(), &ProfileLine::seconds);
  return lines;
}

std::string memory_text(const TracedStep& step) {
  const StepTrace& trace = step.trace;
  std::string text = concat(bytes_text(trace.bytes()), ": weights, gradients, moments and batches ", bytes_text(trace.persistent_bytes),
                            ", within a step ", bytes_text(trace.step_bytes()));
  if (trace.decoding_bytes > 0) {
    text +=
        concat(", for a test sentence of ", step.resolved.recipe.batch.sequence, " tokens at the end ", bytes_text(trace.decoding_bytes));
  }
  return text;
}

}  // namespace

void print_step(std::ostream& stream, const TracedStep& step, const Page& page) {
  constexpr std::size_t kLabel = 16;
  const auto line = [&](std::string label, const std::string& text) {
    label.resize(kLabel, ' ');
    stream << wrapped(label + text, page, kLabel) << '\n';
  };
  double flops = 0.0;
  for (const TraceEntry& entry : step.trace.trace.entries)
    flops += static_cast<double>(entry.times) * static_cast<double>(entry.cost.flops);
  line("step", concat(number_text(1e-9 * flops, "%.4g"), " GFLOP in ", count_text(step.trace.trace.launches()), " launches on ",
                      device_text(step.device)));
  line("memory", memory_text(step));
  line("parameters", count_text(step.trace.parameters));
  line("attention", text_of(step.resolved.segments, batch_shape(step.resolved)));
  if (step.device.backend == Backend::cuda) line("predicted times", source_of(cost_model_of(step.device)));
  stream << '\n';
  const StepPlan plan = plan_step(step.resolved, step.trace, step.device);
  print_gemms(stream, {.lines = plan.gemms, .device = step.device, .step_s = plan.predicted_s()}, page);
}

void print_profile(std::ostream& stream, const Profile& profile, const Page& page) {
  const std::vector<ProfileLine> lines = profile_lines(profile.launches);
  double total = 0.0, fastest = 0.0;
  for (const ProfileLine& line : lines) {
    total += line.seconds;
    fastest = std::max(fastest, static_cast<double>(line.cost.flops) / line.seconds);
  }
  const RateUnit rates = rate_unit(fastest);
  const double each = 1.0 / static_cast<double>(std::max<std::int64_t>(1, profile.steps));
  const auto per_step = [&](std::size_t count) { return count_text(std::llround(static_cast<double>(count) * each)); };
  stream << wrapped(concat("a step takes ", time_text(total * each), " in ", per_step(profile.launches.size()),
                           " launches, each timed by itself"),
                    page)
         << '\n';
  Table table({{.heading = "layer", .align = Align::left},
               {.heading = "operation", .align = Align::left},
               {.heading = "count", .rank = 2},
               {.heading = "time per step"},
               {.heading = "share"},
               {.heading = rates.unit, .rank = 3},
               {.heading = "GB/s", .rank = 4},
               {.heading = "predicted", .rank = 1}});
  for (const ProfileLine& line : lines) {
    table.add({line.layer, line.operation, per_step(static_cast<std::size_t>(line.count)), time_text(line.seconds * each),
               percent_text(line.seconds / total), number_text(rates.scale * static_cast<double>(line.cost.flops) / line.seconds, "%.2f"),
               number_text(1e-9 * static_cast<double>(line.cost.bytes) / line.seconds, "%.1f"),
               line.predicted_s > 0.0 ? percent_text(line.predicted_s / line.seconds, 0) : std::string()});
  }
  table.print(stream, page);
}

}  // namespace tilewave
