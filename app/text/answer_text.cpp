#include "app/text/answer_text.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <ostream>

#include "app/text/gemm_table.h"
#include "app/text/units.h"
#include "framework/io/json_lines.h"
#include "kernels/core/device_profiles.h"
#include "models/planning/launch_limit.h"

namespace tilewave {
namespace {

std::string times_as_long(double times) { return number_text(times, "%.3g times as long"); }

// "17.18 GFLOP", "5.44 kB"
std::string in_thousands(std::int64_t count, std::string_view unit) {
  constexpr std::string_view kPrefixes[] = {"", "k", "M", "G", "T", "P"};
  auto value = static_cast<double>(count);
  std::size_t prefix = 0;
  for (; value >= 999.95 && prefix + 1 < std::size(kPrefixes); ++prefix) value /= 1000.0;
  return concat(number_text(value, "%.4g"), ' ', kPrefixes[prefix], unit);
}

std::string work_text(const Cost& cost) {
  return concat(in_thousands(cost.flops, "FLOP"), " over ", in_thousands(cost.bytes, "B"), " are ", number_text(intensity(cost), "%.4g"),
                " FLOP/B");
}

std::string counted(std::int64_t count, std::string_view one, std::string_view many) {
  return concat(count_text(count), ' ', count == 1 ? one : many);
}

// What the limit means here, in numbers.
std::string bound_text(const GemmLine& line, const DeviceInfo& device) {
  const LaunchTerms terms = launch_terms(line.problem, line.plan, device);
  const auto part = [&](double seconds) { return concat(time_text(seconds), ", ", percent_text(seconds / terms.predicted_s, 0)); };
  switch (limit_of(terms)) {
    case Limit::math:
      return concat("bound by math: at the printed peak its FLOPs take ", part(terms.math_s), " of the time, its bytes ",
                    part(terms.memory_s));
    case Limit::memory:
      return concat("bound by memory: at the printed bandwidth its bytes take ", part(terms.memory_s), " of the time, its FLOPs ",
                    part(terms.math_s));
    case Limit::launch:
      return concat("bound by the launch, which takes ", part(terms.launch_s), " of the time");
    case Limit::latency:
      return terms.idle_sms > 1.0 ? concat("bound by latency: SMs without a CTA make its products take ", times_as_long(terms.idle_sms))
                                  : "bound by latency: neither bytes, FLOPs nor the launch come to a third of the time";
    case Limit::cuda_cores:
      return concat("bound by CUDA cores: on them its products take ", times_as_long(terms.cuda_cores), " as on Tensor Cores");
    case Limit::alignment:
      return concat("bound by alignment: it takes ", times_as_long(terms.alignment),
                    " as it would with rows on 128 bytes and a K of whole 16");
    case Limit::tiles:
      return concat("bound by tiles: padding makes its products take ", times_as_long(terms.tiles));
    case Limit::waves:
      return concat("bound by waves: SMs that idle in the last one make its products take ", times_as_long(terms.waves));
    case Limit::unknown:
      break;
  }
  return {};
}

std::string parallelism_text(const GemmLine& line, const DeviceInfo& device) {
  if (device.backend != Backend::cuda) return {};
  const std::int64_t items = line.plan.items(), asked = kGuidesCtasPerSm * device.sm_count;
  return concat(counted(items, "CTA's", "CTAs'"), " worth of tiles, ",
                number_text(static_cast<double>(items) / static_cast<double>(device.sm_count), "%.3g"), " per SM; the guide asks for ",
                kGuidesCtasPerSm, " per SM, ", count_text(asked), ", before it calls parallelism enough",
                items >= asked ? "" : ", and this is less");
}

// What rows start on, and whether a pitch or a padded size mends it.
std::string multiples_text(const GemmQuestion& question, const DeviceInfo& device) {
  const GemmProblem problem = question.problem(GemmRole::forward);
  const AdvisedMultiple multiple = advised_multiple(problem.operand_dtype, device);
  const std::string_view type = name_of(problem.operand_dtype);
  std::string text = concat("multiples: sizes of ", type, " are best as multiples of ", multiple.best);
  if (multiple.least != multiple.best) text += concat(", and of ", multiple.least, " at least");
  text += ". ";
  if (question.pitch == PitchPolicy::aligned)
    return text + "The aligned pitch starts rows on 128 bytes already, whatever the sizes: no padding is needed for that";
  std::int64_t least = kPitchBytes;
  for (const GemmRole role : question.roles()) {
    const GemmProblem one = question.problem(role);
    least = std::min({least, one.a_alignment, one.b_alignment, one.d_alignment});
  }
  const std::int64_t best = multiple.best * size_of(problem.operand_dtype);
  if (least >= best) return text + concat("Rows start on ", least, " bytes here");
  return text + concat("Packed, some rows start on ", least, least == 1 ? " byte" : " bytes",
                       "; an aligned pitch (--pitch aligned) starts all of them on 128 and changes no size");
}

std::string waves_text(const GemmQuestion& question, GemmRole role) {
  const GemmPlan plan = question.plan(question.problem(role));
  const std::string phase = question.as == AskedAs::gemm ? std::string() : concat(name_of(role), ": ");
  if (plan.streams_k) return phase + "even shares of all K, and no waves to be whole";
  const std::optional<std::int64_t> period = period_of_whole_waves(plan);
  if (!period) return phase + "its last tiles share their K, so that no wave needs to be whole";
  const std::string_view size = question.as == AskedAs::gemm ? "N" : role == GemmRole::wgrad ? "out" : "tokens";
  return concat(phase, "whole waves at multiples of ", size, " = ", *period, " or just below (", plan.tile.m, 'x', plan.tile.n, ": ",
                counted(plan.tiling.tiles_m, "tile", "tiles"), " down, ",
                plan.split > 1 ? concat("each ", plan.split, " parts, ") : std::string(), plan.tiling.slots, " at a time)");
}

std::string better_text(const BetterSize& one, AskedAs as) {
  std::string text = concat(
      name_of(one.size, as), ' ', one.from, " -> ", one.to, ": ",
      one.rate_gain < 1.0 ? percent_text(one.rate_gain) + " more FLOP/s" : number_text(1.0 + one.rate_gain, "%.3g times the FLOP/s"));
  if (one.time_gain > 0.0 && one.to > one.from)
    text += concat(", and ", percent_text(one.time_gain), " less time though there is more to do");
  return text;
}

}  // namespace

std::string facts_text(const GemmLine& line, const DeviceInfo& device) {
  const GemmProblem& problem = line.problem;
  const double ratio = ops_per_byte(device, problem.operand_dtype, problem.math), least = roofline_s(line, device);
  const double seconds = predicted_or_nan(line.predicted_s(), device);
  std::string text = work_text(cost_of(problem));
  if (ratio > 0.0) text += concat(", where math limits from ", number_text(ratio, "%.1f"), " on");
  if (std::isfinite(seconds)) text += concat("; ", flops_text(static_cast<double>(problem.flops()) / seconds));
  if (least > 0.0)
    text += concat("; the roofline time is ", time_text(least), ", the prediction ", number_text(seconds / least, "%.3g times it"));
  for (const std::string& more : {bound_text(line, device), parallelism_text(line, device), guides_own_rate(problem, device)}) {
    if (!more.empty()) text += "\n" + more;
  }
  return text;
}

void print_answer(std::ostream& stream, const GemmQuestion& question, const DeviceInfo& device, const Page& page) {
  const auto line = [&](const std::string& text) { stream << wrapped(text, page) << '\n'; };
  const std::string_view batch = question.as == AskedAs::gemm ? "N" : "tokens";
  if (const auto from = math_limited_from(question.problem(GemmRole::forward), device)) {
    line(concat("limited by math, not memory, from ", batch, " = ", *from, " on, the other sizes as they are"));
  } else if (device.bandwidth_bytes_per_s > 0.0) {
    line(concat("limited by memory whatever ", batch, " is, the other sizes as they are"));
  }
  if (device.backend == Backend::cuda) {
    for (const GemmRole role : question.roles()) line(waves_text(question, role));
  }
  if (device.backend == Backend::cuda) line(multiples_text(question, device));
  const std::vector<BetterSize> better = better_sizes(question);
  line("sizes near it that are better, each alone");
  std::string none;
  for (const AskedSize size : {AskedSize::out, AskedSize::tokens, AskedSize::in}) {
    const auto of_size = [size](const BetterSize& one) { return one.size == size; };
    for (const BetterSize& one : better) {
      if (of_size(one)) line("  " + better_text(one, question.as));
    }
    if (std::ranges::none_of(better, of_size)) none += concat(none.empty() ? "" : ", ", name_of(size, question.as));
  }
  if (!none.empty()) line(concat("  ", none, ": no number near makes half a percent more FLOP/s"));
}

void print_answer_json(std::ostream& stream, const GemmQuestion& question, const DeviceInfo& device) {
  const GemmProblem problem = question.problem(GemmRole::forward);
  const AdvisedMultiple multiple = advised_multiple(problem.operand_dtype, device);
  const auto from = math_limited_from(problem, device);
  JsonObject object;
  object.add("kind", "answer").add("device", device.name);
  object.add("out", question.layer.out).add("in", question.layer.in).add("tokens", question.layer.tokens);
  from ? object.add("math_limited_from", *from) : object.add("math_limited_from", NAN);
  object.add("least_multiple", multiple.least).add("best_multiple", multiple.best);
  std::vector<JsonObject> sizes;
  for (const BetterSize& one : better_sizes(question)) {
    sizes.emplace_back()
        .add("size", name_of(one.size, question.as))
        .add("from", one.from)
        .add("to", one.to)
        .add("rate_gain_fraction", one.rate_gain)
        .add("time_gain_fraction", one.time_gain);
  }
  object.add("better", sizes);
  stream << object.text() << '\n';
}

void print_operation(std::ostream& stream, const OperationAnswer& answer, const DeviceInfo& device, const Page& page) {
  const auto line = [&](const std::string& text) { stream << wrapped(text, page) << '\n'; };
  const double ratio = ops_per_byte(device, answer.dtype, MathMode::ieee);
  const std::string_view limit = name_of(answer.limit);
  const std::string where = concat(answer.name, " of ", answer.shape.rows, 'x', answer.shape.cols, " on ", device_text(device));
  line(answer.predicted_s > 0.0 ? concat(where, " is predicted to take ", time_text(answer.predicted_s), ", bound by ", limit)
                                : concat(where, ": its time is unknown, as the device's bandwidth is; name a GPU with --for"));
  std::string facts = work_text(answer.cost);
  if (ratio > 0.0) facts += concat(", where math limits from ", number_text(ratio, "%.1f"), " on");
  if (answer.predicted_s > 0.0) {
    facts += concat("; ", rate_text(1e-9 * static_cast<double>(answer.cost.bytes) / answer.predicted_s), " GB/s of ",
                    rate_text(1e-9 * device.bandwidth_bytes_per_s), " printed; the roofline time is ", time_text(answer.floor_s));
  }
  line(facts);
  line(concat(answer.launches, answer.launches == 1 ? " launch" : " launches",
              "; only fewer bytes make it faster: a narrower type, fewer elements, or fewer passes over them"));
  if (!answer.fused.empty()) line(concat("worth fusing: a step of tilewave's has it in ", answer.fused, ", and saves this pass"));
}

void print_operation_json(std::ostream& stream, const OperationAnswer& answer, const DeviceInfo& device) {
  const auto known = [](double value) { return value > 0.0 ? value : NAN; };
  JsonObject object;
  object.add("kind", "operation").add("device", device.name).add("operation", answer.name);
  object.add("rows", answer.shape.rows).add("cols", answer.shape.cols).add("dtype", name_of(answer.dtype));
  object.add("flops", answer.cost.flops).add("bytes", answer.cost.bytes).add("flops_per_byte", intensity(answer.cost));
  object.add("ops_per_byte", known(ops_per_byte(device, answer.dtype, MathMode::ieee))).add("limit", name_of(answer.limit));
  object.add("least_us", known(1e6 * answer.floor_s)).add("predicted_us", known(1e6 * answer.predicted_s));
  object.add("launches", std::int64_t{answer.launches}).add("fused_into", answer.fused);
  stream << object.text() << '\n';
}

std::string text_of(const RunCost& cost) {
  if (!(cost.seconds > 0.0)) {
    return concat(count_text(cost.steps), " steps: hours are unknown, as the device's times are; name a GPU with --for");
  }
  const auto hours_text = [](double hours) { return number_text(hours, hours < 100.0 ? "%.3g" : "%.0f"); };
  std::string text = concat(count_text(cost.steps), " steps, ", number_text(cost.tokens, "%.3g"),
                            " real target tokens, are predicted to take ", hours_text(cost.hours()), " hours on one such GPU");
  if (cost.price_per_hour)
    text +=
        concat(", ", number_text(cost.hours() * *cost.price_per_hour, "%.2f"), " at ", number_text(*cost.price_per_hour, "%g"), " an hour");
  text += std::isfinite(cost.error.fraction)
              ? concat("; expect an error of up to ", percent_text(cost.error.fraction), ", ", cost.error.source)
              : concat("; the error is not known: ", cost.error.source);
  return text + ". Validation, checkpoints and the start are not in it.";
}

void print_run_json(std::ostream& stream, const RunCost& cost) {
  const bool known = cost.seconds > 0.0;
  JsonObject object;
  object.add("kind", "run").add("steps", cost.steps).add("target_tokens", cost.tokens);
  object.add("hours", known ? cost.hours() : NAN).add("cost", known && cost.price_per_hour ? cost.hours() * *cost.price_per_hour : NAN);
  object.add("error_fraction", cost.error.fraction).add("error_source", cost.error.source);
  stream << object.text() << '\n';
}

}  // namespace tilewave
