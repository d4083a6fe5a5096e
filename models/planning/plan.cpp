// The trace, gathered into lines.
#include "models/planning/plan.h"

#include <algorithm>
#include <cctype>

#include "kernels/core/device_profiles.h"
#include "kernels/core/error.h"
#include "kernels/core/saturating.h"
#include "kernels/gemm/cost/operation_time.h"
#include "kernels/ops/gradient_norm.h"
#include "models/step/step_clock.h"

namespace tilewave {

double intensity(const Cost& cost) { return cost.bytes > 0 ? static_cast<double>(cost.flops) / static_cast<double>(cost.bytes) : 0.0; }

double ops_per_byte(const DeviceInfo& device, DType operands, MathMode math) {
  return device.bandwidth_bytes_per_s > 0.0 ? peak_flops_per_s(device, operands, math) / device.bandwidth_bytes_per_s : 0.0;
}

double floor_s(const Cost& cost, const DeviceInfo& device, DType operands, MathMode math) {
  const double peak = peak_flops_per_s(device, operands, math), bandwidth = device.bandwidth_bytes_per_s;
  if (peak <= 0.0 || bandwidth <= 0.0) return 0.0;
  return std::max(static_cast<double>(cost.flops) / peak, static_cast<double>(cost.bytes) / bandwidth);
}

double floor_s(const Trace& trace, const PrecisionTable& precision, const DeviceInfo& device) {
  double seconds = 0.0;
  for (const TraceEntry& entry : trace.entries) {
    const bool multiplies = entry.gemm || entry.attention;  // elsewhere bytes decide
    const double once =
        floor_s({.flops = multiplies ? entry.cost.flops : 0, .bytes = entry.cost.bytes}, device,
                entry.gemm ? entry.gemm->operand_dtype : precision.activation, entry.gemm ? entry.gemm->math : precision.math);
    seconds += static_cast<double>(entry.times) * once;
  }
  return seconds;
}

PlanWaves waves_of(const GemmPlan& plan) {
  if (plan.streams_k) {
    const double filled = static_cast<double>(plan.blocks) / static_cast<double>(plan.tiling.slots);
    return {.waves = filled, .tail_fraction = filled, .efficiency = filled};
  }
  const std::int64_t slots = plan.tiling.slots, items = plan.items(), parts = items - plan.whole_tiles;
  const auto over_slots = [&](std::int64_t count) { return static_cast<double>(count) / static_cast<double>(slots); };
  // In tiles' time, of which a part takes its share.
  const double used = over_slots(plan.tiling.tiles);
  const double taken = static_cast<double>(ceil_div(plan.whole_tiles, slots)) + static_cast<double>(ceil_div(parts, slots)) / plan.split;
  return {.waves = over_slots(items), .tail_fraction = items % slots == 0 ? 1.0 : over_slots(items % slots), .efficiency = used / taken};
}

GemmProblem plain_gemm(const LayerGemm& layer, Precision precision, PitchPolicy policy) {
  const PrecisionTable table = precision_table(precision);
  const bool wgrad = layer.role == GemmRole::wgrad, forward = layer.role == GemmRole::forward;
  GemmProblem problem{.role = layer.role,
                      .m = forward ? layer.out : layer.in,
                      .n = wgrad ? layer.out : layer.tokens,
                      .k = wgrad     ? layer.tokens
                           : forward ? layer.in
                                     : layer.out,
                      .a_major = forward ? Major::k : Major::m,
                      .b_major = wgrad ? Major::n : Major::k,
                      .operand_dtype = table.activation,
                      .output_dtype = table.activation,
                      .math = table.math};
  const std::int64_t size = size_of(table.activation);
  problem.a_pitch = pitch_of(problem.a_major == Major::k ? problem.k : problem.m, table.activation, policy);
  problem.b_pitch = pitch_of(problem.b_major == Major::k ? problem.k : problem.n, table.activation, policy);
  problem.d_pitch = pitch_of(problem.m, table.activation, policy);
  problem.a_alignment = alignment_of(0, problem.a_pitch * size);
  problem.b_alignment = alignment_of(0, problem.b_pitch * size);
  problem.d_alignment = alignment_of(0, problem.d_pitch * size);
  return problem;
}

std::string without_numbers(std::string_view layer) {
  std::string name;
  for (std::size_t i = 0; i < layer.size(); ++i) {
    const bool digit = std::isdigit(static_cast<unsigned char>(layer[i])) != 0;
    if (!digit) name += layer[i];
    if (digit && (i == 0 || layer[i - 1] == '.')) name += '*';
  }
  return name;
}

bool named_by(std::string_view layer, std::string_view end) {
  return !end.empty() && layer.ends_with(end) && (layer.size() == end.size() || layer[layer.size() - end.size() - 1] == '.');
}

double StepPlan::seconds_of_layer(std::string_view layer) const {
  double seconds = 0.0;
  for (const GemmLine& line : gemms) seconds += named_by(line.layer, layer) ? line.predicted_s() : 0.0;
  return seconds;
}

Recipe predictable(const Recipe& recipe) {
  Recipe own = recipe;
  own.gemm.engine = GemmEngine::tilewave;
  if (plan_source(own.gemm.choice) == PlanSource::measure) own.gemm.choice = "model";
  return own;
}

Recipe of_one_rank(const ResolvedRecipe& resolved) {
  Recipe recipe = resolved.recipe;
  const BatchShape share = share_shape(resolved, recipe.run.ranks);
  if (recipe.run.ranks == 1) return recipe;
  recipe.batch.source_tokens = share.source_rows;
  recipe.batch.target_tokens = share.target_rows;
  recipe.run.ranks = 1;
  return recipe;
}

std::optional<Precision> precision_instead(Precision precision, const DeviceInfo& device) {
  const PrecisionTable table = precision_table(precision);
  if (device.index != kNoDevice || peak_flops_per_s(device, table.activation, table.math) > 0.0) return std::nullopt;
  return precision == Precision::bf16 ? Precision::fp16 : Precision::fp32;
}

void check_plannable(const Recipe& recipe, const DeviceInfo& device) {
  const std::optional<Precision> instead = precision_instead(recipe.run.precision, device);
  TW_CHECK_INPUT(!instead, device.name, " has no units for run.precision = \"", name_of(recipe.run.precision),
                 "\"; use --set run.precision=", name_of(*instead), ".");
}

namespace {

bool is_beside(const StepTrace& trace, std::size_t entry) { return std::ranges::binary_search(trace.beside.entries, entry); }

}  // namespace

namespace {

// Ranks take their sums at the pace of whoever is late: what two H200s wait for each other, one of which is a hundredth slower than the
// other when each is alone (docs/lab/many-gpus.md).
constexpr double kLateRank = 0.02;

// A rank's share of the step as one process's whole.
ResolvedRecipe share_alone(const ResolvedRecipe& resolved) {
  ResolvedRecipe alone = resolve(of_one_rank(resolved));
  alone.segments = part_of(resolved.segments, resolved.recipe.run.ranks);
  return alone;
}

}  // namespace

StepPlan plan_step(const ResolvedRecipe& resolved, const StepTrace& trace, const DeviceInfo& device) {
  StepPlan plan{.rows = (resolved.shapes.source_rows + resolved.shapes.target_rows) * resolved.recipe.batch.accumulate,
                .bytes = trace.bytes(),
                .parameters = trace.parameters,
                .matrix_flops = trace.matrix_flops()};
  plan.ranks = resolved.recipe.run.ranks;
  const StepClock clock = clock_step(trace, resolved.recipe.batch.accumulate, device);
  plan.links_s = clock.links_s;
  plan.exposed_s = clock.exposed_s + clock.delayed_s;
  if (plan.ranks > 1 && device.backend == Backend::cuda) plan.late_s = kLateRank * clock.now_s;
  for (std::size_t i = 0; i < trace.trace.entries.size(); ++i) {
    const TraceEntry& entry = trace.trace.entries[i];
    const std::string layer = without_numbers(entry.layer);
    if (entry.gemm && entry.plan) {
      plan.gemm_s += static_cast<double>(entry.times) * entry.plan->predicted_s;
      const auto same = std::find_if(plan.gemms.begin(), plan.gemms.end(),
                                     [&](const GemmLine& line) { return line.layer == layer && line.problem == *entry.gemm; });
      if (same != plan.gemms.end()) {
        same->count += entry.times;
      } else {
        plan.gemms.push_back({.layer = layer, .count = entry.times, .problem = *entry.gemm, .plan = *entry.plan});
      }
      continue;
    }
    const double predicted_s = static_cast<double>(entry.times) * predicted_seconds(entry, device);
    if (!is_beside(trace, i)) plan.other_s += predicted_s;
    auto same = std::find_if(plan.operations.begin(), plan.operations.end(),
                             [&](const OperationLine& line) { return line.layer == layer && line.operation == entry.operation; });
    if (same == plan.operations.end()) {
      same = plan.operations.insert(same, {.layer = layer, .operation = std::string(entry.operation), .count = 0, .cost = {}});
    }
    same->count += entry.times;
    same->cost.flops += saturating_product(entry.cost.flops, entry.times);
    same->cost.bytes += saturating_product(entry.cost.bytes, entry.times);
    same->predicted_s += predicted_s;
  }
  std::stable_sort(plan.operations.begin(), plan.operations.end(),
                   [](const OperationLine& a, const OperationLine& b) { return a.predicted_s > b.predicted_s; });
  plan.alone_s = plan.ranks > 1 ? plan_step(share_alone(resolved), device).predicted_s() : plan.predicted_s();
  return plan;
}

StepPlan plan_step(const ResolvedRecipe& resolved, const DeviceInfo& device) {
  return plan_step(resolved, trace_step(resolved, device), device);
}

}  // namespace tilewave
