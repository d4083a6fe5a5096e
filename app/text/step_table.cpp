// A traced step, and a profiled one, as tables.
#include "app/text/step_table.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ostream>
#include <string>
#include <vector>

#include "app/text/gemm_text.h"
#include "kernels/gemm/cost/cost_model.h"
#include "models/planning/plan.h"

namespace tilewave {
namespace {

template <class... Values>
void print(std::ostream& stream, const char* pattern, const Values&... values) {
  char line[256];
  std::snprintf(line, sizeof line, pattern, values...);
  stream << line << '\n';
}

// "wave_free_batch: target rows 4096 -> 4224, why; rows of a pass +128; memory +3.0 MiB"
std::string adjustment_text(const Adjustment& adjustment) {
  std::string text = concat(adjustment.rule, ": ", adjustment.what, ' ', adjustment.from);
  text += adjustment.to == adjustment.from ? " stay, " : concat(" -> ", adjustment.to, ", ");
  text += adjustment.why;
  if (adjustment.cost_tokens != 0) text += concat("; rows of a pass ", adjustment.cost_tokens > 0 ? "+" : "", adjustment.cost_tokens);
  if (adjustment.cost_bytes != 0) {
    text += concat("; memory ", adjustment.cost_bytes < 0 ? "-" : "+", bytes_text(std::abs(adjustment.cost_bytes)));
  }
  return text;
}

}  // namespace

std::string bytes_text(std::int64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024.0 && unit + 1 < std::size(kUnits); ++unit) value /= 1024.0;
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
  return text;
}

std::string device_text(const DeviceInfo& device) {
  return concat(device.name, " (", device.sm_count, device.backend == Backend::cuda ? " SMs)" : " threads)");
}

void print_adjustments(std::ostream& stream, const ResolvedRecipe& resolved) {
  for (const Adjustment& adjustment : resolved.adjustments) stream << adjustment_text(adjustment) << '\n';
}

void print_adjustments(std::ostream& stream, const std::vector<AdjustedSetting>& settings) {
  std::vector<Adjustment> all;
  for (const AdjustedSetting& setting : settings) {
    for (const Adjustment& one : setting.adjustments) {
      if (std::find(all.begin(), all.end(), one) == all.end()) all.push_back(one);
    }
  }
  if (!all.empty()) stream << "\nwhat the guidelines made of it\n";
  for (const Adjustment& adjustment : all) {
    std::string names;
    std::size_t count = 0;
    for (const AdjustedSetting& setting : settings) {
      if (std::find(setting.adjustments.begin(), setting.adjustments.end(), adjustment) == setting.adjustments.end()) continue;
      names += concat(names.empty() ? "" : ", ", setting.name);
      ++count;
    }
    stream << "  " << adjustment_text(adjustment) << "\n    in " << (count == settings.size() ? "every setting" : names) << '\n';
  }
}

void print_step(std::ostream& stream, const ResolvedRecipe& resolved, const StepTrace& trace, const DeviceInfo& device) {
  double flops = 0.0;
  for (const TraceEntry& entry : trace.trace.entries) flops += static_cast<double>(entry.times) * static_cast<double>(entry.cost.flops);
  stream << "parameters      " << trace.parameters << '\n';
  stream << "memory          " << bytes_text(trace.bytes()) << ": weights, gradients, moments and batches "
         << bytes_text(trace.persistent_bytes) << ", within a step " << bytes_text(trace.step_bytes());
  if (trace.decoding_bytes > 0) {
    stream << ", for a test sentence of " << resolved.recipe.batch.sequence << " tokens at the end " << bytes_text(trace.decoding_bytes);
  }
  stream << '\n';
  print(stream, "a step          %.3f GFLOP in %zu launches on %s", flops * 1e-9, static_cast<std::size_t>(trace.trace.launches()),
        device_text(device).c_str());
  stream << "attention       " << text_of(resolved.segments, batch_shape(resolved)) << '\n';
  if (device.backend == Backend::cuda) stream << "predicted times " << source_of(cost_model_of(device)) << '\n';
  stream << '\n';
  print(stream, "%-34s %-8s %5s %7s %7s %7s  %-11s %-22s %6s %7s %6s %6s", "layer", "role", "count", "M", "N", "K", "align A/B/D",
        "row/tile", "tiles", "useful", "waves", "tail");
  for (const GemmLine& line : plan_step(resolved, trace, device).gemms) {
    const GemmPlan& plan = line.plan;
    const PlanWaves waves = waves_of(plan);
    char alignment[32];
    std::snprintf(alignment, sizeof alignment, "%ld/%ld/%ld", static_cast<long>(plan.a_alignment), static_cast<long>(plan.b_alignment),
                  static_cast<long>(plan.d_alignment));
    print(stream, "%-34s %-8s %5ld %7ld %7ld %7ld  %-11s %-22s %6ld %6.1f%% %6.2f %5.1f%%", line.layer.c_str(),
          std::string(name_of(line.problem.role)).c_str(), static_cast<long>(line.count), static_cast<long>(line.problem.m),
          static_cast<long>(line.problem.n), static_cast<long>(line.problem.k), alignment, row_text(plan).c_str(),
          static_cast<long>(plan.tiling.tiles), 100.0 * plan.tiling.useful_fraction, waves.waves, 100.0 * waves.tail_fraction);
  }
}

void print_profile(std::ostream& stream, const std::vector<ProfiledLaunch>& launches, std::int64_t steps) {
  struct Line {
    std::string layer, operation;
    std::int64_t count = 0;
    double seconds = 0.0, predicted_s = 0.0;
    Cost cost;
  };
  std::vector<Line> lines;
  double total = 0.0;
  for (const ProfiledLaunch& launch : launches) {
    const TraceEntry& entry = launch.entry;
    const std::string layer = without_numbers(entry.layer);
    const std::string operation = entry.gemm ? concat(entry.operation, " ", name_of(entry.gemm->role)) : std::string(entry.operation);
    auto line =
        std::find_if(lines.begin(), lines.end(), [&](const Line& known) { return known.layer == layer && known.operation == operation; });
    if (line == lines.end()) line = lines.insert(lines.end(), {.layer = layer, .operation = operation, .cost = {}});
    line->count += 1;
    line->seconds += launch.seconds;
    line->predicted_s += entry.plan ? entry.plan->predicted_s : 0.0;
    line->cost.flops += entry.cost.flops;
    line->cost.bytes += entry.cost.bytes;
    total += launch.seconds;
  }
  std::stable_sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) { return a.seconds > b.seconds; });
  const double each = 1.0 / static_cast<double>(std::max<std::int64_t>(1, steps));
  print(stream, "%-34s %-24s %5s %11s %7s %9s %9s %9s", "layer", "operation", "count", "us a step", "share", "TFLOP/s", "GB/s",
        "predicted");
  for (const Line& line : lines) {
    print(stream, "%-34s %-24s %5.0f %11.1f %6.1f%% %9.2f %9.1f %9s", line.layer.c_str(), line.operation.c_str(),
          static_cast<double>(line.count) * each, 1e6 * line.seconds * each, 100.0 * line.seconds / total,
          1e-12 * static_cast<double>(line.cost.flops) / line.seconds, 1e-9 * static_cast<double>(line.cost.bytes) / line.seconds,
          line.predicted_s > 0.0 ? concat(std::round(100.0 * line.predicted_s / line.seconds), " %").c_str() : "");
  }
  print(stream, "%-34s %-24s %5zu %11.1f", "a step", "", static_cast<std::size_t>(static_cast<double>(launches.size()) * each),
        1e6 * total * each);
}

}  // namespace tilewave
