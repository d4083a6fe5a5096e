#include "models/planning/plan_json.h"

#include <cmath>
#include <ostream>

#include "framework/io/json_lines.h"
#include "models/planning/gemm_answer.h"
#include "models/planning/launch_limit.h"

namespace tilewave {
namespace {

JsonObject& add_fields(JsonObject& object, const Adjustment& adjustment) {
  object.add("rule", adjustment.rule).add("what", adjustment.what);
  object.add("from", adjustment.from).add("to", adjustment.to).add("why", adjustment.why);
  return object.add("cost_tokens", adjustment.cost_tokens).add("cost_bytes", adjustment.cost_bytes);
}

void write_operation(std::ostream& stream, const OperationLine& line, const DeviceInfo& device) {
  JsonObject object;
  object.add("kind", "operation").add("device", device.name).add("layer", line.layer).add("count", line.count);
  object.add("operation", line.operation).add("flops", line.cost.flops).add("bytes", line.cost.bytes);
  object.add("flops_per_byte", intensity(line.cost)).add("predicted_us", line.predicted_s > 0.0 ? 1e6 * line.predicted_s : NAN);
  stream << object.text() << '\n';
}

JsonObject object_of(const TriedSize& tried, const DeviceInfo& device) {
  JsonObject object;
  object.add("size", tried.size).add("alignment_bytes", tried.effects.alignment_bytes);
  object.add("alignment_cost_fraction", tried.effects.alignment_cost).add("useful_fraction", tried.effects.useful_fraction);
  object.add("wave_fraction", tried.effects.wave_fraction).add("part_us", 1e6 * predicted_or_nan(tried.part_s, device));
  return object.add("step_gain_fraction", tried.step_gain).add("rate_gain_fraction", tried.rate_gain);
}

void write_advice(std::ostream& stream, const Advice& advice, const DeviceInfo& device) {
  JsonObject object;
  object.add("kind", "advice").add("quantity", advice.quantity).add("from", advice.from).add("to", advice.to);
  object.add("advised", advice.advised).add("part", advice.part).add("part_gain_fraction", advice.part_gain);
  object.add("step_gain_fraction", advice.step_gain).add("cost_rows", advice.cost_rows).add("cost_bytes", advice.cost_bytes);
  object.add("cost_parameters", advice.cost_parameters).add("set", advice.set).add("section", advice.section);
  object.add("remark", advice.remark);
  std::vector<JsonObject> tried;
  for (const TriedSize& one : advice.tried) tried.push_back(object_of(one, device));
  object.add("tried", tried);
  stream << object.text() << '\n';
}

void write_setting(std::ostream& stream, const PredictedSetting& one, const PredictedSetting& baseline) {
  JsonObject object;
  object.add("kind", "setting").add("name", one.setting.name).add("baseline", baseline.setting.name);
  if (one.predicted()) {
    object.add("target_rows", one.target_rows).add("target_tokens", one.target_tokens);
    object.add("vocabulary_padded", one.shapes.vocabulary_padded);
    object.add("predicted_us", 1e6 * one.step.predicted_s()).add("gemm_us", 1e6 * one.step.gemm_s);
    object.add("gain_fraction", one.gain.value_or(NAN)).add("gemm_gain_fraction", one.gemm_gain.value_or(NAN));
    std::vector<JsonObject> adjustments;
    for (const Adjustment& adjustment : one.adjustments) add_fields(adjustments.emplace_back(), adjustment);
    object.add("adjustments", adjustments);
  } else {
    object.add("refused", one.refused);
  }
  stream << object.text() << '\n';
}

}  // namespace

Cost cost_of(const GemmProblem& problem) { return {.flops = problem.flops(), .bytes = problem.bytes()}; }

double roofline_s(const GemmLine& line, const DeviceInfo& device) {
  return static_cast<double>(line.count) * floor_s(cost_of(line.problem), device, line.problem.operand_dtype, line.problem.math);
}

std::int64_t ctas_per_sm(const GemmPlan& plan, const DeviceInfo& device) {
  return device.backend == Backend::cuda ? plan.tiling.slots / device.sm_count : 1;
}

double predicted_or_nan(double seconds, const DeviceInfo& device) {
  return device.backend == Backend::cuda || device.clock_hz > 0.0 ? seconds : NAN;
}

void write_json(std::ostream& stream, const PlannedLine& planned) {
  const auto& [line, device, step_s] = planned;
  const GemmProblem& problem = line.problem;
  const GemmPlan& plan = line.plan;
  const PlanWaves waves = waves_of(plan);
  JsonObject object;
  object.add("kind", "gemm").add("device", device.name).add("sm_count", device.sm_count).add("layer", line.layer).add("count", line.count);
  object.add("role", name_of(problem.role)).add("m", problem.m).add("n", problem.n).add("k", problem.k);
  object.add("dtype", name_of(problem.operand_dtype));
  object.add("a_major", name_of(problem.a_major)).add("b_major", name_of(problem.b_major)).add("d_major", name_of(problem.d_major));
  object.add("a_alignment_bytes", problem.a_alignment)
      .add("b_alignment_bytes", problem.b_alignment)
      .add("d_alignment_bytes", problem.d_alignment);
  object.add("flops", problem.flops()).add("bytes", problem.bytes()).add("flops_per_byte", intensity(cost_of(problem)));
  const double ratio = ops_per_byte(device, problem.operand_dtype, problem.math);
  object.add("ops_per_byte", ratio > 0.0 ? ratio : NAN).add("limit", name_of(limit_of(problem, plan, device)));
  const GemmComposition& composition = plan.composition;
  object.add("kernel", name_of(composition)).add("schedule", name_of(composition.schedule)).add("swap_ab", composition.swap_ab);
  object.add("epilogue", name_of(composition.epilogue)).add("tile", concat(plan.tile.m, 'x', plan.tile.n)).add("stages", plan.stages);
  object.add("raster", name_of(plan.raster.kind)).add("raster_group", plan.raster.group);
  object.add("split", plan.split).add("tiles", plan.tiling.tiles);
  object.add("tiles_m", plan.tiling.tiles_m).add("tiles_n", plan.tiling.tiles_n).add("tail_tiles", plan.tiling.tail_tiles);
  object.add("useful_fraction", plan.tiling.useful_fraction).add("blocks_per_sm", ctas_per_sm(plan, device));
  object.add("waves", waves.waves).add("tail_fraction", waves.tail_fraction).add("wave_fraction", waves.efficiency);
  const auto period = period_of_whole_waves(plan);
  period ? object.add("whole_waves_n", *period) : object.add("whole_waves_n", NAN);
  object.add("ctas", plan.items());
  device.backend == Backend::cuda ? object.add("guides_ctas", kGuidesCtasPerSm * device.sm_count) : object.add("guides_ctas", NAN);
  const double least = roofline_s(line, device);
  object.add("least_us", least > 0.0 ? 1e6 * least : NAN);
  object.add("predicted_us", 1e6 * predicted_or_nan(line.predicted_s(), device)).add("share_fraction", line.predicted_s() / step_s);
  object.add("tflops",
             1e-12 * static_cast<double>(line.count) * static_cast<double>(problem.flops()) / predicted_or_nan(line.predicted_s(), device));
  object.add("reason", plan.reason);
  stream << object.text() << '\n';
}

void write_json(std::ostream& stream, const PlannedRecipe& planned) {
  const auto& [resolved, trace, step, advice, settings, device] = planned;
  for (const GemmLine& line : step.gemms) write_json(stream, {.line = line, .device = device, .step_s = step.predicted_s()});
  for (const OperationLine& line : step.operations) write_operation(stream, line, device);
  for (const Adjustment& adjustment : resolved.adjustments) {
    JsonObject object;
    object.add("kind", "adjustment");
    stream << add_fields(object, adjustment).text() << '\n';
  }
  for (const Advice& one : advice) write_advice(stream, one, device);
  stream << JsonObject()
                .add("kind", "step")
                .add("device", device.name)
                .add("recipe", resolved.recipe.name)
                .add("predicted_us", 1e6 * predicted_or_nan(step.predicted_s(), device))
                .add("gemm_us", 1e6 * predicted_or_nan(step.gemm_s, device))
                .add("ranks", step.ranks)
                .add("links_us", 1e6 * predicted_or_nan(step.links_s, device))
                .add("exposed_links_us", 1e6 * predicted_or_nan(step.exposed_s, device))
                .add("late_us", 1e6 * predicted_or_nan(step.late_s, device))
                .add("alone_us", 1e6 * predicted_or_nan(step.alone_s, device))
                .add("efficiency_fraction", step.efficiency())
                .add("rows", step.rows)
                .add("target_rows", resolved.shapes.target_rows * resolved.recipe.batch.accumulate)
                .add("matrix_flops", step.matrix_flops)
                .add("attention_lengths", text_of(resolved.segments, batch_shape(resolved)))
                .add("memory_bytes", step.bytes)
                .add("device_memory_bytes", device.memory_bytes)
                .text()
         << '\n';
  for (const PredictedSetting& one : settings) write_setting(stream, one, settings[one.setting.baseline]);
}

}  // namespace tilewave
