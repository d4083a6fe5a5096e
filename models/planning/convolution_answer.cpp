// Tiles by the guide's arithmetic, times by the plans of GEMMs and by the trace of the operation itself.
#include "models/planning/convolution_answer.h"

#include <algorithm>
#include <limits>

#include "framework/ops/convolution.h"
#include "kernels/core/error.h"
#include "kernels/gemm/cost/operation_time.h"
#include "kernels/ops/add.h"
#include "models/planning/launch_limit.h"

namespace tilewave {
namespace {

constexpr GemmRole kRoles[] = {GemmRole::forward, GemmRole::dgrad, GemmRole::wgrad};

// The layer that has such a GEMM in this role (the guide's table 1 of fully-connected layers).
LayerGemm layer_of(const ConvolutionQuestion& question, GemmRole role) {
  const std::int64_t taps = question.filter.taps();
  if (role == GemmRole::dgrad)
    return {.role = role, .out = taps * question.outputs, .in = question.images.channels, .tokens = question.images.rows()};
  return {.role = role, .out = question.outputs, .in = question.dot_product(), .tokens = question.result().rows()};
}

// What tiles of problem.h's M by N make of a phase.
struct Covering {
  std::int64_t tiles = 0, items = 0;
  double useful_fraction = 1.0;
  double times_the_plan = 1.0;  // that it takes, of the plan's own tiles
};
Covering cover(const ConvolutionQuestion& question, const GemmProblem& problem, const GemmPlan& plan) {
  const Tiling& planned = plan.tiling;
  if (problem.role != GemmRole::wgrad) {
    return {.tiles = planned.tiles, .items = plan.items(), .useful_fraction = planned.useful_fraction};
  }
  const std::int64_t tiles =
      question.filter.taps() * ceil_div(question.images.channels, plan.tile.m) * ceil_div(question.outputs, plan.tile.n);
  const std::int64_t items = tiles * plan.split;
  const bool in_waves = !plan.streams_k && plan.whole_tiles == 0;
  const double times =
      in_waves ? static_cast<double>(ceil_div(items, planned.slots)) / static_cast<double>(ceil_div(plan.items(), planned.slots))
               : static_cast<double>(tiles) / static_cast<double>(planned.tiles);
  return {.tiles = tiles,
          .items = items,
          .useful_fraction = static_cast<double>(problem.m) * static_cast<double>(problem.n) /
                             (static_cast<double>(tiles) * static_cast<double>(plan.tile.m) * static_cast<double>(plan.tile.n)),
          .times_the_plan = std::max(1.0, times)};
}

// The bytes of pixels, weights and outputs, each moved once: the convolution's and not the GEMM's, whose matrix repeats pixels.
std::int64_t bytes_of(const ConvolutionQuestion& question, const GemmProblem& problem) {
  const std::int64_t elements = question.images.rows() * question.images.channels + question.dot_product() * question.outputs +
                                question.result().rows() * question.outputs;
  return elements * size_of(problem.operand_dtype);
}

double seconds_of(const ConvolutionPhase& phase, const GemmProblem& problem, const GemmPlan& plan, const DeviceInfo& device) {
  const double seconds = plan.predicted_s;
  if (limit_of(problem, plan, device) != Limit::memory) return seconds;
  const double repeated_s = static_cast<double>(problem.bytes() - phase.bytes) / device.bandwidth_bytes_per_s;
  return std::clamp(seconds - repeated_s, std::min(seconds, phase.floor_s), seconds);
}

// What the operation launches in one phase, traced.
std::vector<ConvolutionLaunch> launches_of(const ConvolutionQuestion& question, GemmRole role, const DeviceInfo& device) {
  Trace trace;
  Context context(
      TraceQueue{.log = &trace}, device,
      {.precision = question.precision, .pitch = question.pitch, .gemm = {.forced = {}, .alignment_policy = question.alignment_policy}});
  const PrecisionTable& types = context.precision();
  const auto variable = [&](Shape shape, DType dtype, DType gradient, GemmRole wanted) {
    const Tensor value = context.tensor(shape, dtype);
    return role == wanted ? Variable::leaf(value, context.tensor(shape, gradient)) : Variable(value);
  };
  const Variable x = variable({question.images.rows(), question.images.channels}, types.activation, types.activation, GemmRole::dgrad),
                 weight = variable({question.outputs, question.dot_product()}, types.compute, types.gradient, GemmRole::wgrad);
  const Variable y = convolution(context, {.x = x, .weight = weight, .images = question.images, .filter = question.filter});
  if (role != GemmRole::forward) {
    trace.entries.clear();
    backward(context, y, context.tensor(y.shape(), types.activation));
  }
  std::vector<ConvolutionLaunch> launches;
  for (const TraceEntry& entry : trace.entries) {
    if (entry.operation == AddArgs::kOperation) continue;  // a copy of what backward() starts from, which a step has where it lies
    launches.push_back({.operation = std::string(entry.operation),
                        .predicted_s = entry.plan ? entry.plan->predicted_s : predicted_seconds(entry, device)});
  }
  return launches;
}

ConvolutionPhase phase_of(const ConvolutionQuestion& question, GemmRole role, const DeviceInfo& device) {
  const GemmProblem problem = plain_gemm(layer_of(question, role), question.precision, question.pitch);
  const bool turned = role != GemmRole::wgrad;  // problem.h's M is the guide's N
  ConvolutionPhase phase{.role = role,
                         .m = turned ? problem.n : problem.m,
                         .n = turned ? problem.m : problem.n,
                         .k = problem.k,
                         .flops = 2 * question.result().rows() * question.outputs * question.dot_product(),
                         .bytes = bytes_of(question, problem),
                         .gemm_flops = problem.flops()};
  phase.floor_s = floor_s({.flops = phase.flops, .bytes = phase.bytes}, device, problem.operand_dtype, problem.math);
  double least = std::numeric_limits<double>::infinity();
  for (const GemmPlan& plan : question.plans(problem)) {
    const Covering covering = cover(question, problem, plan);
    const double seconds = covering.times_the_plan * seconds_of(phase, problem, plan, device);
    if (seconds >= least) continue;
    least = seconds;
    phase.plan = plan;
    phase.tile = turned ? Tile{.m = plan.tile.n, .n = plan.tile.m} : plan.tile;
    phase.tiles = covering.tiles;
    phase.useful_fraction = covering.useful_fraction;
    phase.slots = plan.tiling.slots;
    phase.tail_tiles = plan.streams_k ? 0 : covering.items % phase.slots;
    const PlanWaves waves = waves_of(plan);
    phase.waves = plan.streams_k ? waves.waves : static_cast<double>(covering.items) / static_cast<double>(phase.slots);
    phase.wave_fraction = covering.items == plan.items() || plan.streams_k
                              ? waves.efficiency
                              : phase.waves / static_cast<double>(ceil_div(covering.items, phase.slots));
    phase.implicit_s = seconds;
  }
  phase.launches = launches_of(question, role, device);
  return phase;
}

}  // namespace

double ConvolutionPhase::launched_s() const {
  double seconds = 0.0;
  for (const ConvolutionLaunch& launch : launches) {
    if (launch.predicted_s <= 0.0) return 0.0;
    seconds += launch.predicted_s;
  }
  return seconds;
}

std::vector<ConvolutionPhase> answer(const ConvolutionQuestion& question, const DeviceInfo& device) {
  const std::string refusal = refuse_convolution(question.images, question.filter);
  TW_CHECK(refusal.empty(), "convolution: ", refusal);
  TW_CHECK(question.outputs > 0, "convolution: ", question.outputs, " channels come out; there must be one at least.");
  std::vector<ConvolutionPhase> phases;
  for (const GemmRole role : kRoles) phases.push_back(phase_of(question, role, device));
  return phases;
}

}  // namespace tilewave
