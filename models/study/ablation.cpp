// Variants are made first, so that what does not fit is known early; then proofs, then times of steps and of their GEMMs.
#include "models/study/ablation.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <utility>

#include "framework/measure/gemm_times.h"
#include "kernels/core/error.h"
#include "kernels/core/saturating.h"
#include "kernels/gemm/catalog.h"
#include "models/planning/plan.h"
#include "models/planning/resolve.h"
#include "models/recipe/corpus_of.h"
#include "models/step/memory_check.h"
#include "models/step/step_plans.h"

namespace tilewave {
namespace {

constexpr std::int64_t kMaxCpuFlops = 20'000'000'000;  // of a step that a CPU measures as it is
// Of a GEMM's times, launched again and again; on a CPU a launch over all its operands is long enough by itself.
constexpr InterleaveOptions kGemmTiming = {.load_s = 0.2, .block_s = 0.006, .screening_block_s = 0.002, .screening_blocks = 1, .rounds = 5};
constexpr InterleaveOptions kCpuGemmTiming = {.load_s = 0.0, .block_s = 0.0, .screening_block_s = 0.0, .screening_blocks = 1, .rounds = 1};
// A GPU is as fast as the work before left it power for: a step after slow ones gains 2 %.
constexpr double kSettleS = 0.1;

// A variant that runs.
struct Contestant {
  AblationVariant* variant = nullptr;
  std::shared_ptr<const Corpus> corpus;
  StepTrace trace;
  std::unique_ptr<Context> context;
  std::unique_ptr<TrainStep> step;
};

Recipe fitting(const AblationRequest& request, std::vector<std::string>& changes) {
  const Recipe& recipe = request.recipe;
  if (request.device.backend != Backend::cpu || request.sizes == AblationSizes::full) return recipe;
  Recipe traced = recipe;
  traced.guidelines.wave_free_batch = WaveFreeBatch::off;
  ResolvedRecipe resolved = resolve(traced);
  if (trace_step(resolved, request.device).matrix_flops() <= kMaxCpuFlops) return recipe;
  if (resolved.segments.origin == PassSegments::Origin::assumed) {  // shorter sentences may take less
    resolved.segments = RealTokenCounter(traced).segments(resolved);
    if (trace_step(resolved, request.device).matrix_flops() <= kMaxCpuFlops) return recipe;
  }
  ToyRecipe toy = toy_sized(recipe);
  changes = std::move(toy.changes);
  return toy.recipe;
}

// A recipe's step in the reference precision.
struct Reference {
  ResolvedRecipe resolved;
  StepTrace trace;
  StepMemory memory;  // shared where another reference's is large enough
  std::unique_ptr<Context> context;
  std::unique_ptr<TrainStep> step;
};

bool has_ranks(const Recipe& recipe, const Setting& setting) {
  try {
    return with_setting(recipe, setting).run.ranks > 1;
  } catch (const InputError&) {
    return false;  // which it says in its turn
  }
}

// Ranks on one CPU share its threads out.
DeviceInfo device_of_rank(const DeviceInfo& device, std::int64_t ranks) {
  if (device.backend != Backend::cpu || ranks == 1) return device;
  return probe_cpu(static_cast<int>(std::max<std::int64_t>(1, device.sm_count / ranks)));
}

// Nothing where a library multiplies: its times are not modelled.
std::optional<double> predicted_step(const ResolvedRecipe& resolved, const StepTrace& trace, const DeviceInfo& device) {
  for (const TraceEntry& entry : trace.trace.entries) {
    if (entry.plan && kernel_of(device.backend, *entry.plan).reference) return std::nullopt;
  }
  return plan_step(resolved, trace, device).predicted_s();
}

class Ablation {
 public:
  explicit Ablation(const AblationRequest& request) : request_(request), queue_(request.queue) {
    report_.recipe = request.recipe.name;
    report_.device = request.device;
    report_.of_pictures = classifies(request.recipe.model);
    report_.steps = request.steps;
  }

  AblationReport run() {
    const bool toy = fitting(request_, report_.changes) != request_.recipe;
    report_.variants.resize(request_.settings.size());
    report_.by_ranks = std::ranges::any_of(request_.settings, [&](const Setting& setting) { return has_ranks(request_.recipe, setting); });
    for (std::size_t i = 0; i < request_.settings.size(); ++i) make(report_.variants[i], i, toy);
    if (report_.by_ranks) {
      run_ranks();
    } else if (!contestants_.empty()) {
      const StepMemory memory = allocate_step_memory(queue_, step_bytes_);
      for (Contestant& one : contestants_) one.step->use_step_memory(one.trace, memory);
      prove();
      measure();
      measure_gemms();
    }
    for (AblationVariant& variant : report_.variants) conclude(variant);
    return std::move(report_);
  }

 private:
  void make(AblationVariant& variant, std::size_t index, bool toy) {
    variant.setting = request_.settings[index];
    try {
      Recipe recipe = with_setting(request_.recipe, variant.setting);
      if (toy) recipe = toy_sized(recipe).recipe;
      check_supported(recipe, request_.device.backend);
      check_files(recipe);
      open_corpus(recipe);
      const DeviceInfo device = device_of_rank(request_.device, recipe.run.ranks);
      check_processes(recipe.run.ranks);
      variant.resolved =
          resolve_with(*corpus_, recipe, device, variant.setting.asked_for ? NoWholeWaves::refused : NoWholeWaves::rows_stay);
      (void)corpus_->training(batch_shape(variant.resolved));  // throws where none of it fits the rows
      variant.target_tokens = RealTokenCounter(recipe, corpus_.get())(variant.resolved).target_tokens();
      const GemmPlans plans = plans_for_step(variant.resolved, {.queue = queue_, .device = device, .noted = request_.noted});
      StepTrace trace = trace_step(variant.resolved, device, {.plans = plans});
      variant.memory_bytes = trace.bytes();
      variant.matrix_flops = saturating_product(trace.matrix_flops(), recipe.run.ranks);
      for (const Contestant& other : contestants_) {
        if (other.variant->resolved.shapes == variant.resolved.shapes && other.trace.trace.entries == trace.trace.entries &&
            other_mathematics(variant.resolved.recipe, other.variant->resolved.recipe).empty()) {
          variant.same_as = static_cast<std::size_t>(other.variant - report_.variants.data());
          return;
        }
      }
      check_room(variant.resolved, trace, step_bytes_);
      request_.noted(concat(variant.setting.name, ": ", variant.resolved.shapes.target_rows * recipe.batch.accumulate,
                            " target rows, vocabulary ", variant.resolved.shapes.vocabulary_padded));
      variant.predicted_s = predicted_step(variant.resolved, trace, device);
      if (report_.by_ranks) {
        contestants_.push_back({.variant = &variant, .corpus = corpus_, .trace = std::move(trace), .context = nullptr, .step = nullptr});
        return;
      }
      auto context = std::make_unique<Context>(request_.queue, request_.device, context_options(variant.resolved.recipe, plans));
      auto step = std::make_unique<TrainStep>(*context, variant.resolved);
      step_bytes_ = std::max(step_bytes_, trace.step_bytes());
      contestants_.push_back(
          {.variant = &variant, .corpus = corpus_, .trace = std::move(trace), .context = std::move(context), .step = std::move(step)});
    } catch (const InputError& error) {
      variant.refused = error.what();
      variant.refused_input = true;
    } catch (const Error& error) {
      variant.refused = error.what();
    }
  }

  void check_processes(std::int64_t ranks) const {
    if (ranks == 1) return;
    TW_CHECK(request_.start_ranks, "run.ranks = ", ranks, ": nobody here starts ranks; `tilewave ablate` does.");
    if (request_.device.backend == Backend::cpu) return;
    const std::int64_t here = std::ssize(probe_cuda().usable);
    TW_CHECK(ranks <= here, "run.ranks = ", ranks, " ranks want a GPU each, and ", here == 1 ? "one is" : concat(here, " are"),
             " here; `tilewave plan --switch` predicts them.");
  }

  // Each setting has its own processes, which end before the next one's begin.
  void run_ranks() {
    for (Contestant& one : contestants_) {
      AblationVariant& variant = *one.variant;
      const Recipe& recipe = variant.resolved.recipe;
      request_.noted(concat(variant.setting.name, ": ", request_.steps, " steps of ", recipe.run.ranks,
                            recipe.run.ranks == 1 ? " rank" : " ranks", ", then timed"));
      try {
        RanksRun run = request_.start_ranks({.recipe = recipe,
                                             .device = device_of_rank(request_.device, recipe.run.ranks),
                                             .steps = request_.steps,
                                             .rounds = request_.timing.rounds});
        variant.curve = std::move(run.curve);
        variant.step = std::move(run.step);
      } catch (const InputError& error) {
        variant.refused = error.what();
        variant.refused_input = true;
      } catch (const Error& error) {
        variant.refused = error.what();
      }
    }
    for (AblationVariant& variant : report_.variants) {
      if (!variant.same_as || report_.variants[*variant.same_as].ran()) continue;
      variant.refused = report_.variants[*variant.same_as].refused;
    }
    std::erase_if(contestants_, [](const Contestant& one) { return !one.variant->ran(); });
    for (AblationVariant& variant : report_.variants) {
      const std::optional<Claim> claim = variant.ran() ? claim_of(variant) : std::nullopt;
      if (claim) prove_ranks(*claim);
      if (variant.ran()) check_finite(variant);
    }
  }

  // Steps take turns in one block of memory, which is allocated when its size is known: `shared` bytes at least.
  void check_room(const ResolvedRecipe& resolved, const StepTrace& trace, std::int64_t shared) {
    if (const std::optional<std::int64_t> free = free_bytes(queue_)) {
      check_memory(resolved, trace, request_.device, *free - std::max<std::int64_t>(0, shared - trace.step_bytes()));
    }
  }

  void open_corpus(const Recipe& recipe) {
    if (corpus_ != nullptr && recipe.data == corpus_recipe_.data && recipe.model.vocabulary == corpus_recipe_.model.vocabulary) return;
    corpus_ = std::make_shared<const Corpus>(corpus_of(recipe));
    corpus_recipe_ = recipe;
    for (const std::string& note : corpus_->notes()) request_.noted(note);
  }

  Contestant* contestant_of(const AblationVariant& variant) {
    const AblationVariant& own = variant.same_as ? report_.variants[*variant.same_as] : variant;
    const auto found = std::find_if(contestants_.begin(), contestants_.end(), [&](const Contestant& one) { return one.variant == &own; });
    return found == contestants_.end() ? nullptr : &*found;
  }

  // What is to be shown: that one contestant computes its baseline's loss.
  struct Claim {
    AblationVariant* variant = nullptr;
    Contestant* one = nullptr;
    const Contestant* baseline = nullptr;
  };

  // Weights are frozen first: steps change them.
  void prove() {
    request_.noted(concat("comparing losses over ", request_.steps, " steps"));
    std::vector<Claim> claims;
    for (AblationVariant& variant : report_.variants) {
      const std::optional<Claim> claim = variant.ran() ? claim_of(variant) : std::nullopt;
      if (claim) claims.push_back(*claim);
    }
    for (const Contestant& baseline : contestants_) prove_frozen(baseline, claims);
    for (Contestant& one : contestants_) one.variant->curve = run_steps(*one.step, *one.corpus, request_.steps);
    for (const Claim& claim : claims) prove_curves(claim);
    for (AblationVariant& variant : report_.variants) {
      if (variant.ran()) check_finite(variant);
    }
  }

  // Nothing where there is nothing to compare, which the variant then says.
  std::optional<Claim> claim_of(AblationVariant& variant) {
    const AblationVariant& its_baseline = report_.baseline_of(variant);
    if (&its_baseline == &variant) return {};
    const Contestant* const baseline = contestant_of(its_baseline);
    if (baseline == nullptr) {
      variant.same_loss = {.verdict = SameLoss::Verdict::not_compared, .how = "its baseline did not run"};
      return {};
    }
    if (std::string why = other_mathematics(variant.resolved.recipe, its_baseline.resolved.recipe); !why.empty()) {
      variant.same_loss = {.verdict = SameLoss::Verdict::another_model, .how = std::move(why)};
      return {};
    }
    Contestant* const one = contestant_of(variant);
    if (one == baseline) {
      variant.same_loss = {.verdict = SameLoss::Verdict::same_bits, .how = concat("the same launches as ", its_baseline.setting.name)};
      return {};
    }
    return Claim{.variant = &variant, .one = one, .baseline = baseline};
  }

  void prove_curves(const Claim& claim) {
    const auto& [variant, one, baseline] = claim;
    SameLoss& same = variant->same_loss;
    if (!same_shape(*one, *baseline)) return;
    const CurvePair curves = {.ours = one->variant->curve, .baseline = baseline->variant->curve};
    if (const std::int64_t step = first_diverged(curves.baseline); step > 0) {
      if (same.verdict == SameLoss::Verdict::differs || same.verdict == SameLoss::Verdict::not_compared) return;  // by frozen weights
      same.verdict = SameLoss::Verdict::not_compared;
      same.how = not_finite("its baseline's loss", step);
    } else if (same_sums(one->trace.trace, baseline->trace.trace)) {
      same = compare_bits(curves);
    } else {
      compare_curves(curves, variant->resolved.recipe.run.precision, one->trace, same);
    }
  }

  static void prove_ranks(const Claim& claim) {
    const auto& [variant, one, baseline] = claim;
    if (!same_shape(*one, *baseline)) {
      variant->same_loss = {.verdict = SameLoss::Verdict::not_compared, .how = "ranks compare steps of the same batches, and these differ"};
      return;
    }
    variant->same_loss = compare_ranks({.ours = one->variant->curve, .baseline = baseline->variant->curve},
                                       variant->resolved.recipe.run.precision, one->trace);
  }

  // A run that diverges shows nothing, whatever it was compared with.
  void check_finite(AblationVariant& variant) {
    const std::int64_t step = first_diverged(contestant_of(variant)->variant->curve);
    SameLoss& same = variant.same_loss;
    if (step == 0 || !same.holds()) return;
    same = {.verdict = SameLoss::Verdict::not_compared, .how = not_finite("its loss", step)};
  }

  static std::string not_finite(std::string_view what, std::int64_t step) {
    return concat(what, " is not finite in step ", step, "; lower optimizer.learning_rate, or take another run.precision");
  }

  // The variants of one baseline that sum otherwise; a reference of it serves them all.
  void prove_frozen(const Contestant& baseline, const std::vector<Claim>& claims) {
    std::optional<Reference> reference;
    std::map<const Contestant*, const SameLoss*> proven;  // variants may have the same launches
    for (const Claim& claim : claims) {
      Contestant& one = *claim.one;
      SameLoss& same = claim.variant->same_loss;
      if (claim.baseline != &baseline) continue;
      if (same_shape(one, baseline) && same_sums(one.trace.trace, baseline.trace.trace)) continue;
      if (const auto found = proven.find(&one); found != proven.end()) {
        same = *found->second;
        continue;
      }
      proven[&one] = &same;
      FrozenSteps steps = {.ours = *one.step, .baseline = *baseline.step};
      std::optional<Reference> own;
      if (baseline.variant->resolved.recipe.run.precision != Precision::fp64) {
        try {
          if (!reference) reference = make_reference(baseline, {});
          own = make_reference(one, reference);
        } catch (const Error& error) {
          same = {.verdict = SameLoss::Verdict::not_compared, .how = error.what()};
          continue;
        }
        steps.reference = reference->step.get();
        steps.our_reference = own ? own->step.get() : steps.reference;
      }
      same = compare_frozen(steps, one.trace, *one.corpus);
    }
  }

  // Of a recipe in the reference precision; nothing where `like` has the same launches.
  std::optional<Reference> make_reference(const Contestant& one, const std::optional<Reference>& like) {
    Reference reference;
    reference.resolved = resolve(reference_of(one.variant->resolved.recipe));
    reference.resolved.segments = one.variant->resolved.segments;
    reference.trace = trace_step(reference.resolved, request_.device);
    if (like && like->resolved.shapes == reference.resolved.shapes && like->trace.trace.entries == reference.trace.trace.entries) return {};
    if (!like || like->memory.bytes < reference.trace.step_bytes()) {
      check_room(reference.resolved, reference.trace, 0);
      reference.memory = allocate_step_memory(queue_, reference.trace.step_bytes());
    } else {
      check_room(reference.resolved, persistent_alone(reference.trace), 0);
      reference.memory = like->memory;
    }
    reference.context = std::make_unique<Context>(request_.queue, request_.device, context_options(reference.resolved.recipe));
    reference.step = std::make_unique<TrainStep>(*reference.context, reference.resolved);
    reference.step->use_step_memory(reference.trace, reference.memory, Launches::separate);
    return reference;
  }

  static StepTrace persistent_alone(const StepTrace& trace) {
    StepTrace alone;
    alone.persistent_bytes = trace.persistent_bytes;
    return alone;
  }

  static bool same_shape(const Contestant& a, const Contestant& b) {
    return batch_shape(a.variant->resolved) == batch_shape(b.variant->resolved);
  }

  void measure() {
    request_.noted(concat("timing ", contestants_.size(), " variants in turns"));
    std::vector<Candidate> candidates;
    for (Contestant& contestant : contestants_) {
      candidates.push_back({.name = contestant.variant->setting.name,
                            .launch = [&](std::size_t) { contestant.step->repeat(); },
                            .always_final = true,
                            .wait = [&] { contestant.context->read_step_state(); }});
    }
    InterleaveOptions timed = request_.timing;
    timed.load_s = std::min(timed.load_s, load_s_of(request_.device.backend));
    if (request_.device.backend == Backend::cuda) timed.settle_s = kSettleS;
    for (const Timing& timing : compare(candidates, {}, timed).ours) {
      for (Contestant& contestant : contestants_) {
        if (contestant.variant->setting.name == timing.name) contestant.variant->step = timing;
      }
    }
  }

  // Those of one layer and role are a group over all variants; what several layers launch alike is timed once.
  void measure_gemms() {
    std::vector<std::vector<PlannedGemm>> groups;
    std::map<std::pair<std::string, GemmRole>, std::size_t> group_of;
    for (const Contestant& contestant : contestants_) {
      for (const TraceEntry& entry : contestant.trace.trace.entries) {
        if (!entry.gemm || !entry.plan || seconds_of(groups, entry) != nullptr) continue;
        const auto at = group_of.try_emplace({without_numbers(entry.layer), entry.gemm->role}, groups.size());
        if (at.second) groups.emplace_back();
        groups[at.first->second].push_back({.problem = *entry.gemm, .plan = *entry.plan});
      }
    }
    request_.noted(concat("timing the GEMMs of ", groups.size(), " layers and roles"));
    for (std::vector<PlannedGemm>& group : groups)
      time_gemms(queue_, group, request_.device.backend == Backend::cuda ? kGemmTiming : kCpuGemmTiming);
    for (Contestant& contestant : contestants_) contestant.variant->gemms = gemm_times(contestant.trace, groups);
  }

  static const double* seconds_of(const std::vector<std::vector<PlannedGemm>>& groups, const TraceEntry& entry) {
    for (const std::vector<PlannedGemm>& group : groups) {
      for (const PlannedGemm& one : group) {
        if (one.problem == *entry.gemm && one.plan == *entry.plan) return &one.seconds;
      }
    }
    return nullptr;
  }

  std::vector<GemmTimes> gemm_times(const StepTrace& trace, const std::vector<std::vector<PlannedGemm>>& timed) const {
    std::vector<GemmTimes> gemms;
    for (const TraceEntry& entry : trace.trace.entries) {
      if (!entry.gemm || !entry.plan) continue;
      const std::string layer = without_numbers(entry.layer);
      auto group = std::find_if(gemms.begin(), gemms.end(),
                                [&](const GemmTimes& one) { return one.layer == layer && one.role == entry.gemm->role; });
      if (group == gemms.end()) {
        group = gemms.insert(gemms.end(), {.layer = layer,
                                           .role = entry.gemm->role,
                                           .problem = *entry.gemm,
                                           .plan = *entry.plan,
                                           .library = kernel_of(request_.device.backend, *entry.plan).reference});
      }
      const auto times = static_cast<double>(entry.times);
      group->count += entry.times;
      group->predicted_s += times * entry.plan->predicted_s;
      group->measured_s += times * *seconds_of(timed, entry);
      group->flops += entry.times * entry.cost.flops;
    }
    return gemms;
  }

  static double gemms_s(const AblationVariant& variant, double GemmTimes::*time) {
    return std::accumulate(variant.gemms.begin(), variant.gemms.end(), 0.0,
                           [&](double sum, const GemmTimes& gemm) { return sum + gemm.*time; });
  }

  static GainInterval gain_interval(const AblationVariant& variant, const Timing& baseline, double tokens) {
    std::vector<double> gains;
    for (std::size_t round = 0; round < variant.step.rounds_s.size(); ++round) {
      gains.push_back(tokens * baseline.rounds_s[round] / variant.step.rounds_s[round] - 1.0);
    }
    const MedianInterval median = median_interval(std::move(gains));
    return {.low = std::min(median.low, *variant.measured_gain),
            .high = std::max(median.high, *variant.measured_gain),
            .confidence = median.confidence};
  }

  void conclude(AblationVariant& variant) {
    if (!variant.ran()) return;
    if (variant.same_as) {
      const AblationVariant& same = report_.variants[*variant.same_as];
      variant.step = same.step;
      variant.predicted_s = same.predicted_s;
      variant.curve = same.curve;
      variant.gemms = same.gemms;
    }
    const Contestant* const found = contestant_of(report_.baseline_of(variant));
    if (found == nullptr) return;
    const AblationVariant& baseline = *found->variant;
    const double tokens = static_cast<double>(variant.target_tokens) / static_cast<double>(baseline.target_tokens);
    variant.measured_gain = tokens * baseline.step.median_s / variant.step.median_s - 1.0;
    variant.gain_interval = gain_interval(variant, baseline.step, tokens);
    const bool predicted = variant.predicted_s && baseline.predicted_s;
    if (predicted) variant.predicted_gain = tokens * *baseline.predicted_s / *variant.predicted_s - 1.0;
    if (report_.by_ranks) return;
    const auto gemm_gain = [&](double GemmTimes::*time) { return tokens * gemms_s(baseline, time) / gemms_s(variant, time) - 1.0; };
    variant.measured_gemm_gain = gemm_gain(&GemmTimes::measured_s);
    if (predicted) variant.predicted_gemm_gain = gemm_gain(&GemmTimes::predicted_s);
    for (GemmTimes& gemm : variant.gemms) {
      const auto other = std::find_if(baseline.gemms.begin(), baseline.gemms.end(),
                                      [&](const GemmTimes& one) { return one.layer == gemm.layer && one.role == gemm.role; });
      gemm.concerned = other == baseline.gemms.end() || other->problem != gemm.problem || !(other->plan == gemm.plan);
    }
  }

  const AblationRequest& request_;
  Queue queue_;
  AblationReport report_;
  std::vector<Contestant> contestants_;
  std::int64_t step_bytes_ = 0;  // of the largest step's memory
  std::shared_ptr<const Corpus> corpus_;
  Recipe corpus_recipe_;
};

}  // namespace

std::optional<double> AblationVariant::gemm_error() const {
  if (!predicted_s || gemms.empty()) return std::nullopt;
  double sum = 0.0, launches = 0.0;
  for (const GemmTimes& gemm : gemms) {
    sum += static_cast<double>(gemm.count) * std::abs(gemm.predicted_s / gemm.measured_s - 1.0);
    launches += static_cast<double>(gemm.count);
  }
  return sum / launches;
}

bool AblationReport::holds() const {
  return std::all_of(variants.begin(), variants.end(), [](const AblationVariant& one) { return one.ran() && one.same_loss.holds(); });
}

AblationReport ablate(const AblationRequest& request) { return Ablation(request).run(); }

}  // namespace tilewave
