// tilewave plan: what a step, a layer or a GEMM will cost on a device, here or not, and which numbers would be better.
// docs/use/plan.md explains the columns.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <span>

#include "app/bench/bench_operands.h"
#include "app/bench/gemm_suite.h"
#include "app/options/command.h"
#include "app/text/gemm_text.h"
#include "app/text/step_table.h"
#include "framework/io/json_lines.h"
#include "kernels/core/device_profiles.h"
#include "kernels/gemm/cost/cost_model.h"
#include "kernels/gemm/guide_tiles.h"
#include "models/planning/advice.h"
#include "models/planning/launch_limit.h"
#include "models/planning/predicted_settings.h"
#include "models/planning/resolve.h"
#include "models/planning/wave_free.h"
#include "models/step/memory_check.h"

namespace tilewave {
namespace {

struct Options {
  RecipeOptions recipe;
  DeviceOptions device;
  std::string profile;
  std::string gemm, layer, tile, precision;
  std::vector<std::string> switches;
  std::string pitch = "packed";
  std::int64_t sms = 0, blocks_per_sm = 0;  // 0: not given
  bool json = false;
};

// The device to plan for: --for, else the one of --device; exercises without a GPU are the guide's, on its V100. With the SMs of --sm.
struct PlannedDevice {
  DeviceInfo info;
  std::int64_t own_sms = 0;
};
PlannedDevice device_of(const Options& options) {
  const bool exercise = (!options.gemm.empty() || !options.layer.empty()) && (options.sms > 0 || !options.tile.empty());
  DeviceInfo device = options.profile.empty() ? options.device.probe() : device_profile(options.profile).device;
  if (options.profile.empty() && exercise && device.backend == Backend::cpu && options.device.device == "auto") {
    device = device_profile("v100").device;
  }
  const std::int64_t own_sms = device.sm_count;
  if (options.sms > 0) {
    device.sm_count = options.sms;
    if (device.backend == Backend::cuda) device.index = kNoDevice;
  }
  return {.info = std::move(device), .own_sms = own_sms};
}

// "MxNxK" as a layer's forward GEMM.
LayerGemm parse_gemm(const std::string& text) {
  LayerGemm gemm;
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::int64_t* const dimension : {&gemm.out, &gemm.tokens, &gemm.in}) {
    const auto [stop, error] = std::from_chars(at, end, *dimension);
    const bool last = dimension == &gemm.in, whole = last ? stop == end : stop != end && *stop == 'x';
    TW_CHECK_INPUT(error == std::errc() && *dimension > 0 && *dimension < (std::int64_t{1} << 31) && whole, "--gemm ", text,
                   ": a GEMM is written MxNxK, for example 8192x128x8192.");
    at = stop + 1;
  }
  check_countable("--gemm", text, {.out = gemm.out, .in = gemm.in, .tokens = gemm.tokens});
  return gemm;
}

std::string known(double value, const char* pattern) {
  if (value <= 0.0) return "unknown";
  char text[64];
  std::snprintf(text, sizeof text, pattern, value);
  return text;
}

std::string alignment_text(const GemmProblem& problem) {
  return concat(name_of(problem.a_major), problem.a_alignment, ' ', name_of(problem.b_major), problem.b_alignment, ' ',
                name_of(problem.d_major), problem.d_alignment);
}

Cost cost_of(const GemmProblem& problem) { return {.flops = problem.flops(), .bytes = problem.bytes()}; }

// That the device's peak and bandwidth leave for all of `count`; 0: not known.
double least_s(const GemmLine& line, const DeviceInfo& device) {
  return static_cast<double>(line.count) * floor_s(cost_of(line.problem), device, line.problem.operand_dtype, line.problem.math);
}

std::int64_t blocks_per_sm(const GemmPlan& plan, const DeviceInfo& device) {
  return device.backend == Backend::cuda ? plan.tiling.slots / device.sm_count : 1;
}

double microseconds(double seconds, const DeviceInfo& device) {
  return device.backend == Backend::cuda || device.clock_hz > 0.0 ? 1e6 * seconds : NAN;
}

// What the predicted times stand on: the guide's tiles where tilewave has no kernels for the device, else its own.
std::string times_text(const PlannedDevice& device, const std::vector<GemmLine>& lines, bool whole_step) {
  const auto is_guides = [](const GemmLine& line) { return line.plan.row.starts_with("guide_"); };
  std::string own = source_of(cost_model_of(device.info));
  if (device.info.sm_count != device.own_sms) own += concat("; by --sm scaled from ", device.own_sms, " SMs to ", device.info.sm_count);
  if (std::ranges::none_of(lines, is_guides)) return "times of tilewave's own kernels: " + own;
  const std::string guides = "times of GEMMs in the guide's tiles: the shares of the peak that its figures reach";
  if (!std::ranges::all_of(lines, is_guides)) return concat(guides, "; of tilewave's own kernels: ", own);
  return whole_step ? concat(guides, "; of what is no GEMM: ", own) : guides;
}

void print_device(const DeviceInfo& device, DType operands, MathMode math, const std::string& times) {
  std::cout << device_text(device);
  if (device.backend == Backend::cuda) {
    const double ratio = ops_per_byte(device, operands, math);
    std::cout << ": " << known(1e-12 * peak_flops_per_s(device, operands, math), "%.4g TFLOP/s") << " in " << name_of(operands)
              << (math == MathMode::tf32 ? " (tf32)" : "") << ", " << known(1e-9 * device.bandwidth_bytes_per_s, "%.4g GB/s")
              << "; math-limited above " << known(ratio, "%.1f FLOP/B");
    const std::string source = source_of_figures(device);
    if (!source.empty()) std::cout << " (" << source << ')';
    std::cout << '\n' << times;
  }
  std::cout << "\n\n";
}

void print_gemms(const std::vector<GemmLine>& lines, const DeviceInfo& device, double step_s) {
  std::printf("%-30s %5s %-8s %7s %7s %7s  %-14s %7s %-10s  %-30s %6s %6s  %4s %7s %6s  %9s %9s %6s\n", "", "", "", "", "", "",
              "alignment B", "", "", "tile", "", "", "wave", "", "", "least", "predicted", "");
  std::printf("%-30s %5s %-8s %7s %7s %7s  %-14s %7s %-10s  %-30s %6s %6s  %4s %7s %6s  %9s %9s %6s\n", "layer", "count", "role", "M", "N",
              "K", "of A, B, D", "FLOP/B", "limit", "row/tile", "tiles", "useful", "per SM", "waves", "tail", "us", "us", "share");
  bool starred = false;
  for (const GemmLine& line : lines) {
    const GemmProblem& problem = line.problem;
    const double flops_per_byte = intensity(cost_of(problem));
    const PlanWaves waves = waves_of(line.plan);
    const bool tail_shows = line.plan.items() < kTailsMatterBelow && waves.efficiency < kWaveFreeEfficiency;
    starred = starred || tail_shows;
    const std::string tile = row_text(line.plan);
    std::printf("%-30s %5ld %-8s %7ld %7ld %7ld  %-14s %7.4g %-10s  %-30s %6ld %5.1f%%  %4ld %7.2f %5.1f%%%s %9s %9.1f %5.1f%%\n",
                line.layer.c_str(), static_cast<long>(line.count), std::string(name_of(problem.role)).c_str(), static_cast<long>(problem.m),
                static_cast<long>(problem.n), static_cast<long>(problem.k), alignment_text(problem).c_str(), flops_per_byte,
                std::string(name_of(limit_of(problem, line.plan, device))).c_str(), tile.c_str(), static_cast<long>(line.plan.tiling.tiles),
                100.0 * line.plan.tiling.useful_fraction, static_cast<long>(blocks_per_sm(line.plan, device)), waves.waves,
                100.0 * waves.tail_fraction, tail_shows ? "*" : " ", known(1e6 * least_s(line, device), "%.1f").c_str(),
                microseconds(line.predicted_s(), device), 100.0 * line.predicted_s() / step_s);
  }
  if (starred)
    std::printf("* fewer than %ld blocks, and more than %.0f %% of their waves idle: a tail that shows\n",
                static_cast<long>(kTailsMatterBelow), 100.0 * (1.0 - kWaveFreeEfficiency));
  std::fflush(stdout);
}

void print_operations(const StepPlan& step) {
  std::printf("\n%-30s %5s %-24s %12s %10s %7s %12s %6s\n", "not GEMMs", "count", "operation", "MFLOP", "MB", "FLOP/B", "predicted us",
              "share");
  for (const OperationLine& line : step.operations) {
    std::printf("%-30s %5ld %-24s %12.1f %10.1f %7.2f %12s %5.1f%%\n", line.layer.c_str(), static_cast<long>(line.count),
                line.operation.c_str(), 1e-6 * static_cast<double>(line.cost.flops), 1e-6 * static_cast<double>(line.cost.bytes),
                intensity(line.cost), known(1e6 * line.predicted_s, "%.1f").c_str(), 100.0 * line.predicted_s / step.predicted_s());
  }
  std::fflush(stdout);
}

std::string percent(double gain) {
  char text[32];
  std::snprintf(text, sizeof text, "%+.1f %%", 100.0 * gain);
  return text;
}

std::string signed_bytes(std::int64_t bytes) { return concat(bytes < 0 ? "-" : "+", bytes_text(std::abs(bytes))); }

void print_advice(const std::vector<Advice>& all, const RealTokenCounter& tokens) {
  std::printf("\nadvice, by predicted time a real token\n");
  if (!tokens.estimated().empty()) {
    std::printf("the corpus cannot be packed, so rows of both sides are taken to fill alike: %s\n", tokens.estimated().c_str());
  }
  for (const Advice& advice : all) {
    std::printf("%-24s %7ld", advice.quantity.c_str(), static_cast<long>(advice.from));
    if (!advice.advised) {
      std::printf("  No change advised: predicted gain %.1f %%", 100.0 * advice.step_gain);
      if (advice.to != advice.from) std::printf(" at %ld", static_cast<long>(advice.to));
      std::printf(".\n");
      continue;
    }
    std::printf(" -> %ld: the step %.1f %% less, %s %.1f %% %s", static_cast<long>(advice.to), 100.0 * advice.step_gain,
                advice.part.c_str(), 100.0 * std::abs(advice.part_gain), advice.part_gain < 0.0 ? "more" : "less");
    if (advice.cost_rows != 0) std::printf("; rows %+ld", static_cast<long>(advice.cost_rows));
    if (advice.cost_parameters != 0) std::printf("; parameters %+ld", static_cast<long>(advice.cost_parameters));
    if (advice.cost_bytes != 0) std::printf("; memory %s", signed_bytes(advice.cost_bytes).c_str());
    std::printf("; %s (%s)\n", advice.set.c_str(), std::string(advice.section).c_str());
  }
  std::fflush(stdout);
}

// What --switch asks for, else the recipe's own switches; none where neither has any.
std::vector<PredictedSetting> predicted_settings(const Options& options, const Recipe& recipe, const DeviceInfo& device,
                                                 RealTokenCounter& tokens) {
  std::string switches;
  for (const std::string& one : options.switches) switches.append(switches.empty() ? "" : " ").append(one);
  if (options.switches.empty()) switches = recipe.ablation.switches;
  return switches.empty() ? std::vector<PredictedSetting>()
                          : predict_settings(recipe, settings_of(parse_switches(switches)), device, tokens);
}

void print_settings(const std::vector<PredictedSetting>& all, const DeviceInfo& device) {
  if (all.empty()) return;
  std::size_t width = 0;
  for (const PredictedSetting& one : all) width = std::max(width, one.setting.name.size());
  std::printf(
      "\nswitches, by predicted time %sa real target token; tilewave ablate measures them\n%-*s %7s %7s %7s %10s %9s %10s %9s %9s\n",
      device.bandwidth_bytes_per_s > 0.0 ? "" : "of GEMMs ", static_cast<int>(width), "setting", "rows", "tokens", "V", "step us",
      "GEMMs us", "tokens/s", "gain", "of GEMMs");
  for (const PredictedSetting& one : all) {
    if (!one.predicted()) {
      std::printf("%-*s has no prediction: %s\n", static_cast<int>(width), one.setting.name.c_str(), one.refused.c_str());
      continue;
    }
    const bool baseline = &all[one.setting.baseline] == &one;
    std::printf("%-*s %7ld %7ld %7ld %10.1f %9.1f %10.4g %9s %9s\n", static_cast<int>(width), one.setting.name.c_str(),
                static_cast<long>(one.target_rows), static_cast<long>(one.target_tokens), static_cast<long>(one.shapes.vocabulary_padded),
                1e6 * one.step.predicted_s(), 1e6 * one.step.gemm_s, static_cast<double>(one.target_tokens) / one.step.predicted_s(),
                baseline   ? "baseline"
                : one.gain ? percent(*one.gain).c_str()
                           : "",
                !baseline && one.gemm_gain ? percent(*one.gemm_gain).c_str() : "");
  }
  std::fflush(stdout);
  std::vector<AdjustedSetting> adjusted;
  for (const PredictedSetting& one : all) {
    if (one.predicted()) adjusted.push_back({.name = one.setting.name, .adjustments = one.adjustments});
  }
  print_adjustments(std::cout, adjusted);
  std::cout << std::flush;
}

JsonObject& add_fields(JsonObject& object, const Adjustment& adjustment) {
  object.add("rule", adjustment.rule).add("what", adjustment.what);
  object.add("from", adjustment.from).add("to", adjustment.to).add("why", adjustment.why);
  return object.add("cost_tokens", adjustment.cost_tokens).add("cost_bytes", adjustment.cost_bytes);
}

void print_json(const std::vector<PredictedSetting>& all) {
  for (const PredictedSetting& one : all) {
    JsonObject object;
    object.add("kind", "setting").add("name", one.setting.name).add("baseline", all[one.setting.baseline].setting.name);
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
    std::cout << object.text() << '\n';
  }
}

// What the chosen rows are and what else was near; why others refuse is for --json. Once, where all say the same.
void print_reasons(const std::vector<GemmLine>& lines) {
  const auto same = [&](const GemmLine& line) {
    return line.plan.row == lines.front().plan.row && line.plan.reason == lines.front().plan.reason;
  };
  const bool once = lines.size() > 1 && std::ranges::all_of(lines, same);
  for (const GemmLine& line : std::span(lines).first(once ? 1 : lines.size())) {
    const std::string reason = line.plan.reason.substr(0, line.plan.reason.find("; refused:"));
    if (reason.empty()) continue;
    std::cout << '\n' << (once ? std::string() : concat(name_of(line.problem.role), ": ")) << line.plan.row << ", " << reason << '\n';
  }
}

void print_json(const GemmLine& line, const DeviceInfo& device, double step_s) {
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
  object.add("flops_per_byte", intensity(cost_of(problem)));
  const double ratio = ops_per_byte(device, problem.operand_dtype, problem.math);
  object.add("ops_per_byte", ratio > 0.0 ? ratio : NAN).add("limit", name_of(limit_of(problem, plan, device)));
  object.add("row", plan.row).add("tile", concat(plan.tile.m, 'x', plan.tile.n)).add("split", plan.split).add("tiles", plan.tiling.tiles);
  object.add("useful_fraction", plan.tiling.useful_fraction).add("blocks_per_sm", blocks_per_sm(plan, device));
  object.add("waves", waves.waves).add("tail_fraction", waves.tail_fraction).add("wave_fraction", waves.efficiency);
  const double least = least_s(line, device);
  object.add("least_us", least > 0.0 ? 1e6 * least : NAN);
  object.add("predicted_us", microseconds(line.predicted_s(), device)).add("share_fraction", line.predicted_s() / step_s);
  object.add("reason", plan.reason);
  std::cout << object.text() << '\n';
}

void print_json(const StepPlan& step, const ResolvedRecipe& resolved, const std::vector<Advice>& all, const DeviceInfo& device) {
  for (const OperationLine& line : step.operations) {
    JsonObject object;
    object.add("kind", "operation").add("device", device.name).add("layer", line.layer).add("count", line.count);
    object.add("operation", line.operation).add("flops", line.cost.flops).add("bytes", line.cost.bytes);
    object.add("flops_per_byte", intensity(line.cost)).add("predicted_us", line.predicted_s > 0.0 ? 1e6 * line.predicted_s : NAN);
    std::cout << object.text() << '\n';
  }
  for (const Adjustment& adjustment : resolved.adjustments) {
    JsonObject object;
    object.add("kind", "adjustment");
    std::cout << add_fields(object, adjustment).text() << '\n';
  }
  for (const Advice& advice : all) {
    JsonObject object;
    object.add("kind", "advice").add("quantity", advice.quantity).add("from", advice.from).add("to", advice.to);
    object.add("advised", advice.advised).add("part", advice.part).add("part_gain_fraction", advice.part_gain);
    object.add("step_gain_fraction", advice.step_gain).add("cost_rows", advice.cost_rows).add("cost_bytes", advice.cost_bytes);
    object.add("cost_parameters", advice.cost_parameters).add("set", advice.set).add("section", advice.section);
    std::cout << object.text() << '\n';
  }
  std::cout << JsonObject()
                   .add("kind", "step")
                   .add("device", device.name)
                   .add("recipe", resolved.recipe.name)
                   .add("predicted_us", microseconds(step.predicted_s(), device))
                   .add("gemm_us", microseconds(step.gemm_s, device))
                   .add("rows", step.rows)
                   .add("target_rows", resolved.shapes.target_rows * resolved.recipe.batch.accumulate)
                   .add("matrix_flops", step.matrix_flops)
                   .add("attention_lengths", text_of(resolved.segments, batch_shape(resolved)))
                   .add("memory_bytes", step.bytes)
                   .add("device_memory_bytes", device.memory_bytes)
                   .text()
            << '\n';
}

void print_memory(const ResolvedRecipe& resolved, const StepTrace& trace, const DeviceInfo& device) {
  const bool gpu = device.backend == Backend::cuda;
  const std::string shortage = gpu ? memory_shortage(resolved, trace, device, device.memory_bytes) : std::string();
  std::printf("memory %s%s\n", bytes_text(trace.bytes()).c_str(), gpu ? concat(" of ", bytes_text(device.memory_bytes)).c_str() : "");
  if (!shortage.empty()) std::printf("it does not fit: %s\n", shortage.c_str());
  std::fflush(stdout);
}

// Settings that are mistakes of the input say so beside the table too, and make the command fail; the others are planned.
int exit_code_of(const std::vector<PredictedSetting>& settings) {
  int code = 0;
  for (const PredictedSetting& one : settings) {
    if (!one.refused_input) continue;
    std::cerr << "tilewave: " << one.setting.name << ": " << one.refused << '\n';
    code = 2;
  }
  return code;
}

int plan_recipe(const Options& options) {
  const Recipe asked = options.recipe.read(), recipe = predictable(asked);
  if (recipe != asked) std::cerr << "planned with tilewave's own GEMMs: a library's times and measured ones are not predicted\n";
  const PlannedDevice planned_for = device_of(options);
  const DeviceInfo& device = planned_for.info;
  const PrecisionTable table = precision_table(recipe.run.precision);
  check_plannable(recipe, device);
  RealTokenCounter tokens(recipe);
  const ResolvedRecipe resolved = resolve(recipe, {}, device, tokens);
  const StepTrace trace = trace_step(resolved, device);
  const StepPlan step = plan_step(resolved, trace, device);
  const std::vector<Advice> advice = advise(resolved.recipe, device, tokens, recipe.guidelines.wave_free_batch);
  const std::vector<PredictedSetting> settings = predicted_settings(options, asked, device, tokens);
  const int exit_code = exit_code_of(settings);
  if (options.json) {
    for (const GemmLine& line : step.gemms) print_json(line, device, step.predicted_s());
    print_json(step, resolved, advice, device);
    print_json(settings);
    return exit_code;
  }
  print_device(device, table.activation, table.math, times_text(planned_for, step.gemms, true));
  print_adjustments(std::cout, resolved);
  std::cout << std::flush;
  print_gemms(step.gemms, device, step.predicted_s());
  print_operations(step);
  const double seconds = step.predicted_s();
  const auto targets = static_cast<double>(resolved.shapes.target_rows * resolved.recipe.batch.accumulate);
  if (step.other_s > 0.0) {
    std::printf(
        "\na step is predicted to take %.1f us: GEMMs %.1f, the rest %.1f; %.4g target rows/s, %.4g TFLOP/s in matrix "
        "products\n",
        1e6 * seconds, 1e6 * step.gemm_s, 1e6 * step.other_s, targets / seconds, 1e-12 * static_cast<double>(step.matrix_flops) / seconds);
  } else {
    std::printf("\na step's GEMMs are predicted to take %.1f us; the rest is unknown, as the device's bandwidth is\n", 1e6 * seconds);
  }
  std::printf("%s\n", text_of(resolved.segments, batch_shape(resolved)).c_str());
  print_memory(resolved, trace, device);
  print_advice(advice, tokens);
  print_settings(settings, device);
  return exit_code;
}

GemmLine planned(const std::string& name, const GemmProblem& problem, const Options& options, const DeviceInfo& device) {
  if (options.tile.empty()) return {.layer = name, .problem = problem, .plan = choose(problem, device)};
  const std::optional<Tile> tile = parse_tile(options.tile);
  TW_CHECK_INPUT(tile, "--tile ", options.tile, ": a tile is written MxN, for example 256x128.");
  TW_CHECK_INPUT(device.backend == Backend::cuda, "--tile ", options.tile, " counts on a GPU's SMs, and ", device.name,
                 " is none; name a GPU with --for.");
  const BlocksPerSm blocks =
      options.blocks_per_sm > 0 ? BlocksPerSm{options.blocks_per_sm, "as --blocks-per-sm says"} : assumed_blocks_per_sm(*tile);
  GemmLine line = {.layer = name, .problem = problem, .plan = plan_guide_tile(problem, *tile, device, blocks.blocks)};
  line.plan.reason = concat("in ", tile->m, "x", tile->n, " with ", blocks.blocks, blocks.blocks == 1 ? " block" : " blocks",
                            " of it an SM at a time, ", blocks.source);
  return line;
}

int plan_gemms(const Options& options) {
  const PlannedDevice planned_for = device_of(options);
  const DeviceInfo& device = planned_for.info;
  const Precision precision = !options.precision.empty()        ? precision_of(options.precision, device.backend)
                              : device.backend == Backend::cuda ? Precision::fp16
                                                                : Precision::fp32;
  const PitchPolicy pitch = options.pitch == "aligned" ? PitchPolicy::aligned : PitchPolicy::packed;
  const PrecisionTable table = precision_table(precision);
  const std::optional<Precision> instead = precision_instead(precision, device);
  TW_CHECK_INPUT(!instead, device.name, " has no units for --precision ", name_of(precision), "; use --precision ", name_of(*instead), ".");
  std::vector<GemmLine> lines;
  if (!options.gemm.empty()) {
    lines.push_back(planned(options.gemm, plain_gemm(parse_gemm(options.gemm), precision, pitch), options, device));
  }
  if (!options.layer.empty()) {
    const Layer layer = parse_layer(options.layer);
    for (const GemmRole role : {GemmRole::forward, GemmRole::dgrad, GemmRole::wgrad}) {
      const GemmProblem problem = plain_gemm({.role = role, .out = layer.out, .in = layer.in, .tokens = layer.tokens}, precision, pitch);
      lines.push_back(planned(options.layer, problem, options, device));
    }
  }
  double seconds = 0.0;
  for (const GemmLine& line : lines) seconds += line.predicted_s();
  if (!options.json) {
    print_device(device, table.activation, table.math, times_text(planned_for, lines, false));
    print_gemms(lines, device, seconds);
    print_reasons(lines);
    return 0;
  }
  for (const GemmLine& line : lines) print_json(line, device, seconds);
  return 0;
}

int run_plan(const Options& options) {
  const bool exercise = !options.gemm.empty() || !options.layer.empty();
  TW_CHECK_INPUT(exercise != !options.recipe.path.empty(),
                 "plan takes a recipe, or --gemm MxNxK, or --layer out<-in@tokens: one kind of them, and not none.");
  TW_CHECK_INPUT(!exercise || (options.recipe.overrides.empty() && options.switches.empty()),
                 "--set and --switch change a recipe, and --gemm and --layer take none: --precision and --pitch say how they lie.");
  TW_CHECK_INPUT(exercise || options.tile.empty(),
                 "--tile goes with --gemm and --layer; a recipe's tiles are forced with --set gemm.choice=<row>/<M>x<N>.");
  TW_CHECK_INPUT(options.profile.empty() || options.device.device == "auto", "--for ", options.profile, " and --device ",
                 options.device.device, " name two devices; a plan is made for one.");
  return exercise ? plan_gemms(options) : plan_recipe(options);
}

}  // namespace

Command add_plan(CLI::App& program) {
  CLI::App* command =
      program.add_subcommand("plan", "what a step, a layer or a GEMM will cost on a device, here or not, and which numbers are better");
  const auto options = std::make_shared<Options>();
  options->recipe.add_to(*command);
  command->get_option("recipe")->required(false);
  options->device.add_to(*command);
  std::string keys;
  for (const DeviceProfile& profile : device_profiles()) keys += concat(keys.empty() ? "" : ", ", profile.key);
  command->add_option("--for", options->profile, "a GPU that need not be here: " + keys)->type_name("NAME");
  command->add_option("--switch", options->switches, "a key and its values: each setting's step beside (default: ablation.switches)")
      ->take_all()
      ->type_name("KEY=VALUE,VALUE");
  command->add_option("--gemm", options->gemm, "this GEMM alone")->type_name("MxNxK");
  command->add_option("--layer", options->layer, "this layer's three GEMMs alone")->type_name("OUT<-IN@TOKENS");
  command->add_option("--tile", options->tile, "with --gemm or --layer: this tile, as the guide counts")->type_name("MxN");
  command
      ->add_option("--blocks-per-sm", options->blocks_per_sm,
                   "with --tile: blocks of it on an SM at a time (default: the guide's number, or what is assumed)")
      ->check(CLI::Range(1, 1024))
      ->needs(command->get_option("--tile"));
  command->add_option("--sm", options->sms, "so many SMs instead of the device's")->check(CLI::Range(1, 1 << 20));
  command->add_option("--precision", options->precision, "with --gemm or --layer: fp32, tf32, bf16, fp16 or fp64")
      ->excludes(command->get_option("recipe"));
  command->add_option("--pitch", options->pitch, "with --gemm or --layer: how rows follow one another")
      ->check(CLI::IsMember({"packed", "aligned"}))
      ->excludes(command->get_option("recipe"))
      ->capture_default_str();
  command->add_flag("--json", options->json, "one JSON object a line");
  return {command, [options] { return run_plan(*options); }};
}

}  // namespace tilewave
