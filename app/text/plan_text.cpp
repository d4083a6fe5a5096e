#include "app/text/plan_text.h"

#include <algorithm>
#include <cmath>
#include <ostream>
#include <span>

#include "app/text/adjustments.h"
#include "app/text/answer_text.h"
#include "app/text/gemm_table.h"
#include "app/text/table.h"
#include "app/text/units.h"
#include "kernels/core/device_profiles.h"
#include "kernels/gemm/cost/cost_model.h"
#include "models/planning/launch_limit.h"
#include "models/step/memory_check.h"

namespace tilewave {
namespace {

bool is_guides(const GemmLine& line) { return line.plan.composition.kernel.starts_with("guide_"); }

// What the predicted times stand on: the guide's tiles where tilewave has no kernels for the device, else its own.
std::string times_text(const PlannedDevice& device, const std::vector<GemmLine>& lines, bool whole_step) {
  std::string own = source_of(cost_model_of(device.info));
  if (device.info.sm_count != device.own_sms) own += concat("; by --sm scaled from ", device.own_sms, " SMs to ", device.info.sm_count);
  constexpr int kGuides = 80;  // the A100, whose figures in the guide are a library's
  if (std::ranges::none_of(lines, is_guides)) {
    return concat("times of tilewave's own kernels: ", own,
                  device.info.capability == kGuides ? "; the guide's figures of this GPU are cuBLAS's" : "");
  }
  const std::string guides = "times of GEMMs in the guide's tiles: the shares of the peak that its figures reach";
  if (!std::ranges::all_of(lines, is_guides)) return concat(guides, "; of tilewave's own kernels: ", own);
  return whole_step ? concat(guides, "; of what is no GEMM: ", own) : guides;
}

void print_device(std::ostream& stream, const DeviceInfo& device, const PrecisionTable& types, const Page& page) {
  std::string text = device_text(device);
  if (device.backend == Backend::cuda) {
    const double peak = peak_flops_per_s(device, types.activation, types.math);
    const double ratio = ops_per_byte(device, types.activation, types.math);
    const double bandwidth = 1e-9 * device.bandwidth_bytes_per_s;
    text += concat(": ", peak > 0.0 ? flops_text(peak) : "unknown", " in ", name_of(types.activation),
                   types.math == MathMode::tf32 ? " (tf32)" : "", ", ", bandwidth > 0.0 ? rate_text(bandwidth) + " GB/s" : "unknown",
                   "; math-limited above ", ratio > 0.0 ? number_text(ratio, "%.1f FLOP/B") : "unknown");
    if (const std::string source = source_of_figures(device); !source.empty()) text += concat(" (", source, ')');
  }
  stream << wrapped(text, page) << '\n';
}

// What part of a step's predicted time each limit makes: of GEMMs what bounds the launch, of all else whether it is attention.
struct Bound {
  std::string what;
  double seconds = 0.0;
};
std::vector<Bound> bounds_of(const StepPlan& step, const DeviceInfo& device) {
  std::vector<Bound> bounds;
  const auto add = [&](const std::string& what, double seconds) {
    if (seconds <= 0.0) return;
    const auto known = std::ranges::find(bounds, what, &Bound::what);
    if (known == bounds.end()) {
      bounds.push_back({.what = what, .seconds = seconds});
    } else {
      known->seconds += seconds;
    }
  };
  for (const GemmLine& line : step.gemms) {
    const std::string_view limit = name_of(limit_of(line.problem, line.plan, device));
    add(limit.empty() ? std::string("GEMMs") : concat(limit, " in GEMMs"), line.predicted_s());
  }
  for (const OperationLine& line : step.operations) {
    add(line.operation.starts_with("attention") ? "attention" : "bytes and launches of what is no GEMM", line.predicted_s);
  }
  std::ranges::stable_sort(bounds, std::ranges::greater(), &Bound::seconds);
  return bounds;
}

std::string bounds_text(const StepPlan& step, const DeviceInfo& device) {
  constexpr double kTold = 0.02;  // of the step; less is left out
  std::string text;
  for (const Bound& bound : bounds_of(step, device)) {
    const double share = bound.seconds / step.predicted_s();
    if (!text.empty() && share < kTold) continue;
    text += concat(text.empty() ? "" : ", ", bound.what, ' ', percent_text(share, 0));
  }
  return "bound by " + text;
}

std::string step_text(const StepText& text) {
  const auto& [resolved, trace, step, advice, settings, device] = text.planned;
  const std::string where = concat(resolved.recipe.name, " on ", device_text(device), ": ");
  const std::string time = time_text(predicted_or_nan(step.predicted_s(), device));
  if (step.other_s <= 0.0) {
    return concat(where, "a step's GEMMs are predicted to take ", time, "; the rest is unknown, as the device's bandwidth is");
  }
  const auto targets = static_cast<double>(resolved.shapes.target_rows * resolved.recipe.batch.accumulate);
  return concat(where, "a step is predicted to take ", time, " (GEMMs ", time_text(step.gemm_s), ", the rest ", time_text(step.other_s),
                "), ", rate_text(targets / step.predicted_s()), classifies(resolved.recipe.model) ? " pictures/s, " : " target rows/s, ",
                flops_text(static_cast<double>(step.ranks * step.matrix_flops) / step.predicted_s()), " in matrix products");
}

// What the other ranks cost.
std::string ranks_text(const StepPlan& step, const DeviceInfo& device) {
  const std::string ranks = concat(step.ranks, " ranks");
  if (device.link_bytes_per_s <= 0.0) return concat(ranks, ": how fast their links are is not known, and they are left out of the time");
  return concat(ranks, ": what they exchange takes the links ", time_text(step.links_s), ", ", time_text(step.exposed_s),
                " of which the step waits for; each does ", percent_text(step.efficiency()),
                " of what it would do alone. Rows that are advised are one rank's");
}

std::string roofline_text(const PlannedRecipe& planned) {
  const double least = floor_s(planned.trace.trace, precision_table(planned.resolved.recipe.run.precision), planned.device);
  return least > 0.0 ? concat("roofline time ", time_text(least), ": the printed peak and bandwidth leave no less") : std::string();
}

std::string memory_text(const PlannedRecipe& planned) {
  const auto& [resolved, trace, step, advice, settings, device] = planned;
  const bool gpu = device.backend == Backend::cuda;
  const std::string shortage = gpu ? memory_shortage(resolved, trace, device, device.memory_bytes) : std::string();
  const std::string of = gpu ? concat(" of ", bytes_text(device.memory_bytes)) : std::string();
  return concat("memory ", bytes_text(trace.bytes()), of, shortage.empty() ? "" : "\nit does not fit: ", shortage);
}

// What each effect is worth of the part's time by itself, from the recipe's number to the one advised.
std::string worth_text(const Advice& advice) {
  const auto tried = [&](std::int64_t size) { return std::ranges::find(advice.tried, size, &TriedSize::size); };
  if (tried(advice.from) == advice.tried.end() || tried(advice.to) == advice.tried.end()) return {};
  const SizeEffects &from = tried(advice.from)->effects, &to = tried(advice.to)->effects;
  return concat("; of the time of ", advice.part, " by themselves alignment (", from.alignment_bytes, " -> ", to.alignment_bytes,
                " bytes) is worth ", percent_text(from.alignment_cost - to.alignment_cost), ", tiles (", percent_text(from.useful_fraction),
                " -> ", percent_text(to.useful_fraction), " useful) ", percent_text(to.useful_fraction - from.useful_fraction),
                " and waves (", percent_text(from.wave_fraction), " -> ", percent_text(to.wave_fraction), " full) ",
                percent_text(to.wave_fraction - from.wave_fraction));
}

std::string advice_text(const Advice& advice) {
  const std::string remark = advice.remark.empty() ? std::string() : concat("; ", advice.remark);
  std::string text = concat(advice.quantity, ' ', advice.from);
  if (!advice.advised) {
    return concat(text, ": no change advised, predicted gain ", percent_text(advice.step_gain),
                  advice.to != advice.from ? concat(" at ", advice.to) : std::string(), remark);
  }
  text += concat(" -> ", advice.to, ": the step ", percent_text(advice.step_gain), " less, ", advice.part, ' ',
                 percent_text(std::abs(advice.part_gain)), advice.part_gain < 0.0 ? " more" : " less");
  if (advice.cost_rows != 0) text += "; rows " + signed_count_text(advice.cost_rows);
  if (advice.cost_parameters != 0) text += "; parameters " + signed_count_text(advice.cost_parameters);
  if (advice.cost_bytes != 0) text += "; memory " + signed_bytes_text(advice.cost_bytes);
  return concat(text, "; ", advice.set, " (", advice.section, ')', worth_text(advice), remark);
}

// Every number that was tried of the quantity that has them, the recipe's own among them.
void print_tried(std::ostream& stream, const StepText& text, const Page& page) {
  const std::vector<Advice>& all = text.planned.advice;
  const auto first = std::ranges::find_if(all, [](const Advice& advice) { return !advice.tried.empty(); });
  if (first == all.end()) return;
  Table table({{.heading = first->quantity},
               {.heading = "rows start on", .rank = 4},
               {.heading = "alignment costs"},
               {.heading = "useful of tiles"},
               {.heading = "full of waves"},
               {.heading = concat("time of ", first->part), .rank = 3},
               {.heading = "FLOP/s of the step", .rank = 2},
               {.heading = "its time"},
               {.heading = "", .align = Align::left}});
  for (const TriedSize& one : first->tried) {
    const bool own = one.size == first->from;
    const bool advised = std::ranges::any_of(
        all, [&](const Advice& advice) { return advice.quantity == first->quantity && advice.advised && advice.to == one.size; });
    table.add({count_text(one.size), concat(one.effects.alignment_bytes, " bytes"), percent_text(one.effects.alignment_cost),
               percent_text(one.effects.useful_fraction), percent_text(one.effects.wave_fraction),
               time_text(predicted_or_nan(one.part_s, text.planned.device)), own ? "" : gain_text(one.rate_gain),
               own ? "" : gain_text(-one.step_gain),
               own       ? "as it is"
               : advised ? "advised"
                         : ""});
  }
  stream << '\n';
  table.print(stream, page);
}

void print_advice(std::ostream& stream, const StepText& text, const Page& page) {
  const std::string& estimated = text.tokens.estimated();
  stream << "\nadvice, by predicted time per " << (classifies(text.planned.resolved.recipe.model) ? "picture" : "real token") << '\n';
  if (!estimated.empty()) {
    stream << wrapped(concat("  the corpus cannot be packed, so rows of both sides are taken to fill alike: ", estimated), page) << '\n';
  }
  // What would gain something comes first.
  for (const bool advised : {true, false}) {
    for (const Advice& advice : text.planned.advice) {
      if (advice.advised == advised) stream << wrapped("  " + advice_text(advice), page) << '\n';
    }
  }
  print_tried(stream, text, page);
}

void print_operations(std::ostream& stream, const StepPlan& step, const Page& page) {
  Table table({{.heading = "not GEMMs", .align = Align::left},
               {.heading = "count", .rank = 1},
               {.heading = "operation", .align = Align::left},
               {.heading = "MFLOP", .rank = 4},
               {.heading = "MB", .rank = 2},
               {.heading = "FLOP/B", .rank = 3},
               {.heading = "predicted time"},
               {.heading = "share"}});
  for (const OperationLine& line : step.operations) {
    table.add({line.layer, count_text(line.count), line.operation, number_text(1e-6 * static_cast<double>(line.cost.flops), "%.1f"),
               number_text(1e-6 * static_cast<double>(line.cost.bytes), "%.1f"), number_text(intensity(line.cost), "%.2f"),
               time_text(line.predicted_s), percent_text(line.predicted_s / step.predicted_s())});
  }
  table.print(stream, page);
}

void print_settings(std::ostream& stream, const PlannedRecipe& planned, const Page& page) {
  const std::vector<PredictedSetting>& all = planned.settings;
  if (all.empty()) return;
  const bool pictures = classifies(planned.resolved.recipe.model);
  stream << wrapped(concat("\nswitches, by predicted time ", planned.device.bandwidth_bytes_per_s > 0.0 ? "" : "of GEMMs ",
                           pictures ? "per picture" : "per real target token", "; tilewave ablate measures them"),
                    page)
         << '\n';
  Table table({{.heading = "setting", .align = Align::left},
               {.heading = pictures ? "pictures" : "rows", .rank = 5},
               {.heading = pictures ? "of data" : "tokens", .rank = 6},
               {.heading = pictures ? "classes" : "V", .rank = 4},
               {.heading = "step time"},
               {.heading = "time of GEMMs", .rank = 3},
               {.heading = pictures ? "pictures/s" : "tokens/s", .rank = 2},
               {.heading = "gain"},
               {.heading = "GEMMs' gain", .rank = 1}});
  for (const PredictedSetting& one : all) {
    if (!one.predicted()) {
      table.remark(concat(one.setting.name, " has no prediction: ", one.refused));
      continue;
    }
    const bool baseline = &all[one.setting.baseline] == &one;
    table.add({one.setting.name, count_text(one.target_rows), count_text(one.target_tokens), count_text(one.shapes.vocabulary_padded),
               time_text(one.step.predicted_s()), time_text(one.step.gemm_s),
               rate_text(static_cast<double>(one.target_tokens) / one.step.predicted_s()),
               baseline ? "baseline" : gain_or_nothing(one.gain), baseline ? "" : gain_or_nothing(one.gemm_gain)});
  }
  table.print(stream, page);
  std::vector<AdjustedSetting> adjusted;
  for (const PredictedSetting& one : all) {
    if (one.predicted()) adjusted.push_back({.name = one.setting.name, .adjustments = one.adjustments});
  }
  print_adjustments(stream, adjusted, page);
}

void print_indented(std::ostream& stream, const std::string& text, const Page& page) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    stream << wrapped("  " + text.substr(begin, end - begin), page) << '\n';
    begin = end + 1;
  }
}

// What the chosen kernels are and what else was near; why others refuse is for --json. Once, where all say the same.
void print_reasons(std::ostream& stream, const std::vector<GemmLine>& lines, const Page& page) {
  const auto same = [&](const GemmLine& line) {
    return line.plan.composition == lines.front().plan.composition && line.plan.reason == lines.front().plan.reason;
  };
  const bool once = lines.size() > 1 && std::ranges::all_of(lines, same);
  for (const GemmLine& line : std::span(lines).first(once ? 1 : lines.size())) {
    const std::string reason = line.plan.reason.substr(0, line.plan.reason.find("; refused:"));
    if (reason.empty()) continue;
    const std::string role = once ? std::string() : concat(name_of(line.problem.role), ": ");
    stream << '\n' << wrapped(concat(role, name_of(line.plan.composition), ", ", reason), page) << '\n';
  }
}

}  // namespace

void print_plan(std::ostream& stream, const StepText& text, const Page& page) {
  const auto& [resolved, trace, step, advice, settings, device] = text.planned;
  const auto line = [&](const std::string& prose) {
    if (!prose.empty()) stream << wrapped(prose, page) << '\n';
  };
  line(step_text(text));
  if (text.planned.step.ranks > 1) line(ranks_text(text.planned.step, text.planned.device));
  line(bounds_text(step, device));
  line(text.run);
  line(roofline_text(text.planned));
  line(memory_text(text.planned));
  line(text_of(resolved.segments, batch_shape(resolved)));
  print_adjustments(stream, resolved, page);
  print_advice(stream, text, page);
  stream << '\n';
  print_device(stream, device, precision_table(resolved.recipe.run.precision), page);
  if (device.backend == Backend::cuda) line(times_text(text.device, step.gemms, true));
  stream << '\n';
  print_gemms(stream, {.lines = step.gemms, .device = device, .step_s = step.predicted_s()}, page);
  stream << '\n';
  print_operations(stream, step, page);
  print_settings(stream, text.planned, page);
}

void print_exercise(std::ostream& stream, const ExerciseText& text, const Page& page) {
  const DeviceInfo& device = text.device.info;
  double seconds = 0.0;
  for (const GemmLine& line : text.lines) {
    seconds += line.predicted_s();
    const std::string_view limit = name_of(limit_of(line.problem, line.plan, device));
    const std::string bound = limit.empty() ? std::string() : concat(", bound by ", limit);
    stream << wrapped(concat(name_of(line.problem.role), " of ", line.layer, " on ", device_text(device), " is predicted to take ",
                             time_text(predicted_or_nan(line.predicted_s(), device)), bound, ", in ", name_of(line.plan)),
                      page)
           << '\n';
    print_indented(stream, facts_text(line, device), page);
  }
  for (const GemmQuestion& question : text.questions) {
    stream << '\n';
    print_answer(stream, question, device, page);
  }
  print_reasons(stream, text.lines, page);
  stream << '\n';
  print_device(stream, device, precision_table(text.precision), page);
  if (device.backend == Backend::cuda) stream << wrapped(times_text(text.device, text.lines, false), page) << '\n';
  stream << '\n';
  print_gemms(stream, {.lines = text.lines, .device = device, .step_s = seconds}, page);
}

void print_convolution_answer(std::ostream& stream, const ConvolutionText& text, const PlannedDevice& device, const Page& page) {
  print_convolution(stream, text, page);
  stream << '\n';
  print_device(stream, device.info, precision_table(text.question.precision), page);
  if (device.info.backend != Backend::cuda) return;
  std::vector<GemmLine> lines;
  for (const ConvolutionPhase& phase : text.phases) lines.push_back({.plan = phase.plan});
  stream << wrapped(concat(times_text(device, lines, true), "; im2col and col2im are not measured"), page) << '\n';
}

void print_operation_answer(std::ostream& stream, const OperationAnswer& answer, const PlannedDevice& device, const Page& page) {
  print_operation(stream, answer, device.info, page);
  if (device.info.backend != Backend::cuda) return;
  stream << '\n' << wrapped("times of operations: " + source_of(cost_model_of(device.info)), page) << '\n';
}

}  // namespace tilewave
