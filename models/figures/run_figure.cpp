#include "models/figures/run_figure.h"

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

#include "framework/measure/gemm_scratch.h"
#include "framework/measure/operation_work.h"
#include "kernels/core/error.h"
#include "kernels/core/graph.h"
#include "kernels/gemm/cost/operation_time.h"
#include "models/figures/convolution_points.h"
#include "models/figures/gemm_points.h"

namespace tilewave {
namespace {

constexpr double kFigureBlockSeconds = 0.004, kFigureScreeningSeconds = 0.002;
// A GPU at its power limit runs a candidate faster after one that needs less, so each begins its block as hot as it makes the GPU itself.
constexpr double kFigureSettleSeconds = 0.01;
constexpr std::size_t kMaxOperationSets = 32;

double or_nan(double seconds) { return seconds > 0.0 ? seconds : NAN; }

FigureRecord begun(const FigurePoint& point) { return {.series = point.series, .group = point.group, .label = point.label, .x = point.x}; }

void fill_plan(FigureRecord& record, const GemmPlan& plan) {
  const PlanWaves waves = waves_of(plan);
  record.kernel = name_of(plan.composition);
  record.tile = concat(plan.tile.m, 'x', plan.tile.n);
  record.split = plan.split;
  record.tiles = plan.tiling.tiles;
  record.slots = plan.tiling.slots;
  record.tail_tiles = plan.tiling.tail_tiles;
  record.useful_fraction = plan.tiling.useful_fraction;
  record.waves = waves.waves;
  record.tail_fraction = waves.tail_fraction;
  record.wave_fraction = waves.efficiency;
  record.predicted_s = or_nan(plan.predicted_s);
}

// The plan that answers a point; without one, why, in the record. Of a figure that runs nothing only the work is told.
enum class Answered : std::uint8_t { plan, work };
std::optional<GemmPlan> plan_gemm(FigureRecord& record, const FigurePoint& point, const FigureSetting& setting, Answered answer) {
  const GemmProblem& problem = point.problem;
  record.operation = "gemm";
  record.phase = name_of(problem.role);
  record.layout = name_of(layout_of(problem.role));
  record.m = problem.m, record.n = problem.n, record.k = problem.k;
  record.dtype = name_of(problem.operand_dtype);
  record.pitch = point.pitch == PitchPolicy::packed ? "packed" : "aligned";
  record.a_alignment = problem.a_alignment, record.b_alignment = problem.b_alignment, record.d_alignment = problem.d_alignment;
  record.flops = problem.flops(), record.bytes = problem.bytes();
  record.floor_s = or_nan(floor_s({.flops = record.flops, .bytes = record.bytes}, setting.device, problem.operand_dtype, problem.math));
  record.refused = point.refused;
  if (!record.refused.empty() || answer == Answered::work) return {};
  try {
    GemmPlan plan = choose(problem, setting.device, point.choice);
    if (point.library) {
      record.kernel = name_of(plan.composition);
    } else {
      fill_plan(record, plan);
    }
    return plan;
  } catch (const Error& error) {
    record.refused = error.what();
    return {};
  }
}

void predict_operation(FigureRecord& record, const FigurePoint& point, const FigureSetting& setting) {
  Context context(TraceQueue{}, setting.device, {.precision = setting.precision});
  const TraceEntry entry = benched_operation(point.operation).prepare(context, point.shape).entry;
  record.operation = point.operation;
  record.m = point.shape.rows, record.n = point.shape.cols;
  record.dtype = name_of(context.precision().activation);
  record.pitch = "aligned";
  record.flops = entry.cost.flops, record.bytes = entry.cost.bytes;
  const double bandwidth = setting.device.bandwidth_bytes_per_s;
  record.floor_s = bandwidth > 0.0 ? static_cast<double>(record.bytes) / bandwidth : NAN;
  record.predicted_s = or_nan(predicted_seconds(entry, setting.device));
}

// The launches of a convolution's pass one after another, and the plan of its GEMM.
void predict_convolution(FigureRecord& record, const FigurePoint& point, const FigureSetting& setting) {
  const ConvolutionPass& pass = *point.convolution;
  Trace trace;
  Context context(TraceQueue{.log = &trace}, setting.device, {.precision = setting.precision});
  const Images& images = pass.images;
  const Images result = pass.result();
  const std::int64_t taps = pass.filter.taps();
  record.operation = concat("convolution ", name_of(pass));
  record.phase = convolution_phase(pass.role);
  record.layout = "NHWC";
  const bool forward = pass.role == GemmRole::forward, dgrad = pass.role == GemmRole::dgrad;  // the guide's table 4
  record.m = forward ? result.rows() : dgrad ? images.rows() : taps * images.channels;
  record.n = dgrad ? images.channels : pass.outputs;
  record.k = forward ? taps * images.channels : dgrad ? taps * pass.outputs : result.rows();
  record.dtype = name_of(context.precision().activation);
  record.pitch = "aligned";
  try {
    const OperationWork work = prepare_convolution(context, pass);
    record.flops = work.entry.cost.flops, record.bytes = work.entry.cost.bytes;
    record.floor_s = or_nan(floor_s(work.entry.cost, setting.device, context.precision().activation, context.precision().math));
    trace.entries.clear();
    work.launch();
  } catch (const Error& error) {
    record.refused = error.what();
    return;
  }
  double predicted_s = 0.0;
  for (const TraceEntry& entry : trace.entries) {
    if (entry.plan) fill_plan(record, *entry.plan);
    const double seconds = entry.plan ? entry.plan->predicted_s : predicted_seconds(entry, setting.device);
    predicted_s = seconds > 0.0 ? predicted_s + seconds : NAN;
  }
  record.predicted_s = or_nan(predicted_s);
}

void keep_timing(FigureRecord& record, const Timing& timing, int rounds) {
  record.measured_s = timing.median_s;
  record.lower_quartile_s = timing.lower_quartile_s, record.upper_quartile_s = timing.upper_quartile_s;
  record.rounds = rounds;
}

// Measures places, one after another, on one queue.
class PlaceMeasure {
 public:
  PlaceMeasure(const Queue& queue, const FigureSetting& setting, int rounds)
      : queue_(queue), setting_(setting), scratch_(queue), context_(queue, setting.device, {.precision = setting.precision}) {
    context_.write_step_state({.step = 1, .seed = 1, .learning_rate = 1e-4, .real_tokens = 1000});
    interleave_ = {.load_s = load_s_of(setting.device.backend),
                   .block_s = kFigureBlockSeconds,
                   .screening_block_s = kFigureScreeningSeconds,
                   .rounds = rounds,
                   .settle_s = setting.device.backend == Backend::cuda ? kFigureSettleSeconds : 0.0};
  }

  // What takes turns: a record to fill, what it asks, its plan where it is a GEMM.
  struct Asked {
    FigureRecord* record = nullptr;
    const FigurePoint* point = nullptr;
    std::optional<GemmPlan> plan;
  };
  // One that cannot be made, or does not fit, is refused in its record, and the others go on.
  void measure(const std::vector<Asked>& asked) {
    std::vector<Candidate> candidates;
    for (std::size_t i = 0; i < asked.size(); ++i) {
      try {
        candidates.push_back(candidate(asked[i], std::to_string(i)));
      } catch (const std::bad_alloc&) {
        asked[i].record->refused = "its operands do not fit in memory.";
      } catch (const Error& error) {
        asked[i].record->refused = error.what();
      }
    }
    if (candidates.empty()) return;
    interleave_.finalists = candidates.size();
    for (const Timing& timing : compare(candidates, {}, interleave_).ours) {
      keep_timing(*asked[std::stoul(timing.name)].record, timing, interleave_.rounds);
    }
    interleave_.load_s = 0.0;  // the device is warm now
    posed_.reset();
  }

 private:
  Candidate candidate(const Asked& one, std::string name) {
    if (!one.plan) return operation(*one.point, std::move(name));
    if (posed_ == nullptr || posed_->problem != one.point->problem) posed_ = scratch_.pose(one.point->problem);
    return scratch_.candidate(posed_, *one.plan, std::move(name));
  }

  Candidate operation(const FigurePoint& point, std::string name) {
    const auto prepared = [&] {
      return point.convolution ? prepare_convolution(context_, *point.convolution)
                               : benched_operation(point.operation).prepare(context_, point.shape);
    };
    const auto sets = std::make_shared<std::vector<OperationWork>>();
    do {
      sets->push_back(prepared());
    } while (static_cast<std::int64_t>(sets->size()) * sets->front().entry.cost.bytes < kRotatedBytes && sets->size() < kMaxOperationSets);
    const auto launch_all = [sets] {
      for (const OperationWork& set : *sets) set.launch();
    };
    launch_all();  // loads kernels
    synchronize(context_.queue());
    return {.name = std::move(name),
            .launch = [graph = std::make_shared<Graph>(capture(context_.queue(), launch_all)), sets](std::size_t) { graph->replay(); },
            .launches = sets->size(),
            .wait = [this] { synchronize(context_.queue()); }};
  }

  Queue queue_;
  const FigureSetting& setting_;
  GemmScratch scratch_;
  Context context_;
  InterleaveOptions interleave_;
  std::shared_ptr<const GemmScratch::Posed> posed_;
};

bool same_place(const FigurePoint& a, const FigurePoint& b) { return a.x == b.x && a.group == b.group && a.label == b.label; }

// What an earlier run measured of the same, if it did.
bool take_known(FigureRecord& record, const FigureRecords& known, int rounds) {
  const auto found = std::ranges::find_if(
      known, [&](const FigureRecord& other) { return other.measured() && other.rounds >= rounds && other.same_question(record); });
  if (found == known.end()) return false;
  record.measured_s = found->measured_s;
  record.lower_quartile_s = found->lower_quartile_s, record.upper_quartile_s = found->upper_quartile_s;
  record.rounds = found->rounds;
  return true;
}

}  // namespace

FigureRun run_figure(const FigureRequest& request) {
  const auto& [figure, setting, queue, rounds, known, place_done] = request;
  FigureRun run;
  if (!figure.points) return run;
  run.asked = figure.points(setting);
  const std::vector<FigurePoint>& points = run.asked.points;
  TW_CHECK_INPUT(!points.empty(), "figures ", figure.name, ": a sweep of no points; ask for at least one.");
  std::optional<PlaceMeasure> measure;
  run.records.reserve(points.size());
  for (std::size_t first = 0, end = 0; first < points.size() && !run.stopped; first = end) {
    std::vector<PlaceMeasure::Asked> asked;
    for (end = first; end < points.size() && same_place(points[first], points[end]); ++end) {
      const FigurePoint& point = points[end];
      FigureRecord& record = run.records.emplace_back(begun(point));
      std::optional<GemmPlan> plan;
      if (point.convolution) {
        predict_convolution(record, point, setting);
      } else if (point.operation.empty()) {
        plan = plan_gemm(record, point, setting, figure.runs ? Answered::plan : Answered::work);
      } else {
        predict_operation(record, point, setting);
      }
      if (take_known(record, known, rounds)) {
        ++run.reused;
      } else if (record.refused.empty()) {
        asked.push_back({.record = &record, .point = &point, .plan = std::move(plan)});
      }
    }
    if (queue && figure.runs && !asked.empty()) {
      if (!measure) measure.emplace(*queue, setting, rounds);
      measure->measure(asked);
      run.measured += static_cast<std::size_t>(std::ranges::count_if(asked, [](const auto& one) { return one.record->measured(); }));
    }
    if (place_done) run.stopped = place_done(run.records, points.size());
  }
  return run;
}

double estimated_seconds(const FigureRecords& records, int rounds) {
  constexpr double kPreparing = 0.03, kScreens = 4.0, kSets = 3.0;
  double seconds = 0.0;
  for (const FigureRecord& record : records) {
    if (!record.refused.empty()) continue;
    const double launch = std::isnan(record.predicted_s) ? 0.0 : kSets * record.predicted_s;
    seconds += kPreparing + kScreens * std::max(kFigureScreeningSeconds, launch) +
               rounds * (kFigureSettleSeconds + std::max(kFigureBlockSeconds, launch));
  }
  return seconds;
}

}  // namespace tilewave
