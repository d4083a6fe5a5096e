// Both comparisons, parameter by parameter.
#include "models/study/same_loss.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "framework/tensor/host_tensor.h"
#include "kernels/core/error.h"
#include "models/recipe/guidelines.h"
#include "models/recipe/recipe.h"
#include "models/step/step_batches.h"

namespace tilewave {
namespace {

double unit_roundoff(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return std::ldexp(1.0, -53);
    case DType::f32:
      return std::ldexp(1.0, -24);
    case DType::f16:
      return std::ldexp(1.0, -11);
    case DType::bf16:
      return std::ldexp(1.0, -8);
    case DType::i32:
      break;
  }
  throw Error("integers have no unit roundoff.");
}

double relative(double a, double b) { return a == b ? 0.0 : std::abs(a - b) / std::abs(b); }

// Of what layers hand to each other; tf32 rounds operands alone, to as many bits as fp16 has.
double stored_roundoff(Precision precision) {
  const PrecisionTable table = precision_table(precision);
  return unit_roundoff(table.math == MathMode::tf32 ? DType::f16 : table.activation);
}

std::int64_t longest_k(const Trace& trace) {
  std::int64_t longest = 1;
  for (const TraceEntry& entry : trace.entries) longest = std::max(longest, entry.gemm ? entry.gemm->k : 0);
  return longest;
}

// Whether several blocks sum parts of one tile's K, which then begin and end where K and the number of tiles say.
bool shares_k(const GemmPlan& plan) { return plan.split > 1 || plan.streams_k; }

// The larger one; a NaN is larger than any number.
double larger(double a, double b) { return std::isnan(b) || b > a ? b : a; }

}  // namespace

double rounding_tolerance(DType dtype, std::int64_t k) { return unit_roundoff(dtype) * (64.0 + 8.0 * std::sqrt(static_cast<double>(k))); }

Precision reference_precision(const Recipe& recipe) {
  const Precision precision = recipe.run.precision;
  const bool widest =
      precision == Precision::fp32 || precision == Precision::fp64 || recipe.model.activation == FeedForwardActivation::relu;
  return widest ? Precision::fp64 : Precision::fp32;
}

Recipe reference_of(const Recipe& recipe) {
  Recipe reference = recipe;
  reference.run.precision = reference_precision(recipe);
  reference.gemm = {};
  return reference;
}

bool same_sums(const Trace& a, const Trace& b) {
  const auto same = [](const TraceEntry& x, const TraceEntry& y) {
    if (x.operation != y.operation || x.times != y.times || x.gemm.has_value() != y.gemm.has_value()) return false;
    if (!x.gemm || *x.gemm == *y.gemm) return x.plan == y.plan;
    const GemmPlan &p = *x.plan, &q = *y.plan;
    return p.composition == q.composition && p.tile == q.tile && p.cluster == q.cluster && p.split == q.split && p.raster == q.raster &&
           p.algorithm == q.algorithm && p.blocks == q.blocks &&
           (!shares_k(p) || (x.gemm->k == y.gemm->k && p.tiling.tiles == q.tiling.tiles && p.whole_tiles == q.whole_tiles));
  };
  return std::equal(a.entries.begin(), a.entries.end(), b.entries.begin(), b.entries.end(), same);
}

LossCurve run_steps(TrainStep& step, const Corpus& corpus, std::int64_t steps) {
  const ResolvedRecipe& resolved = step.resolved();
  StepBatches batches(corpus, batch_shape(resolved), resolved.recipe.batch.accumulate);
  LossCurve curve;
  for (std::int64_t done = 1; done <= steps; ++done) {
    batches.next_step();
    const StepReport report = step.run(batches.current(), done);
    curve.losses.push_back(report.loss);
    curve.gradient_norms.push_back(report.gradient_norm);
  }
  return curve;
}

std::string_view name_of(SameLoss::Verdict verdict) {
  constexpr std::array<std::string_view, 6> kVerdicts = {"baseline", "equal bit for bit", "within tolerance",
                                                         "DIFFERS",  "another model",     "not compared"};
  return kVerdicts[static_cast<std::size_t>(verdict)];
}

namespace {

LossDistance distance_of(const CurvePair& curves) {
  LossDistance distance;
  for (std::size_t i = 0; i < curves.ours.losses.size(); ++i) {
    distance.loss = larger(distance.loss, relative(curves.ours.losses[i], curves.baseline.losses[i]));
    distance.gradient = larger(distance.gradient, relative(curves.ours.gradient_norms[i], curves.baseline.gradient_norms[i]));
  }
  return distance;
}

}  // namespace

std::int64_t first_diverged(const LossCurve& curve) {
  const auto found = std::find_if(curve.losses.begin(), curve.losses.end(), [](double loss) { return !std::isfinite(loss); });
  return found == curve.losses.end() ? 0 : found - curve.losses.begin() + 1;
}

SameLoss compare_bits(const CurvePair& curves) {
  SameLoss same{.how = concat(curves.ours.losses.size(), " steps"), .distance = distance_of(curves)};
  const bool equal = same.distance.loss == 0.0 && same.distance.gradient == 0.0;
  same.verdict = equal ? SameLoss::Verdict::same_bits : SameLoss::Verdict::differs;
  return same;
}

void compare_curves(const CurvePair& curves, Precision precision, const StepTrace& trace, SameLoss& same) {
  same.curve = distance_of(curves);
  same.curve_tolerance =
      8.0 * stored_roundoff(precision) + rounding_tolerance(precision_table(precision).statistics, longest_k(trace.trace));
  const bool within = same.curve.loss <= same.curve_tolerance && same.curve.gradient <= same.curve_tolerance;
  if (!within && same.verdict != SameLoss::Verdict::not_compared) same.verdict = SameLoss::Verdict::differs;
}

SameLoss compare_ranks(const CurvePair& curves, Precision precision, const StepTrace& trace) {
  SameLoss same = compare_bits(curves);
  if (same.verdict == SameLoss::Verdict::same_bits) return same;
  same.verdict = SameLoss::Verdict::within_tolerance;
  same.how = concat(curves.ours.losses.size(), " steps of the same batches");
  compare_curves(curves, precision, trace, same);
  return same;
}

namespace {

// Of each parameter, squared.
struct Squares {
  double ours_to_baseline = 0.0, in_reference = 0.0, ours_to_reference = 0.0, baseline_to_reference = 0.0;
  double baseline = 0.0, reference = 0.0;  // norms
};

double squared_distance(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}
double squared_norm(const std::vector<double>& a) { return squared_distance(a, std::vector<double>(a.size())); }

std::vector<double> gradient_of(TrainStep& step, const Parameter& like) {
  const Parameter* const parameter = step.parameters().find(like.spec.name);
  TW_CHECK(parameter != nullptr && parameter->shape() == like.shape(), like.spec.name,
           " is not in both models alike; only a recipe's own variants can be compared.");
  std::vector<double> elements = read_elements(step.context(), parameter->logical_gradient());
  const double scale = step.context().read_step_state().loss_scale;  // a power of two
  if (scale != 1.0) {
    for (double& element : elements) element /= scale;
  }
  return elements;
}

Squares squares_of(const FrozenSteps& steps, const Parameter& parameter) {
  const std::vector<double> ours = gradient_of(steps.ours, parameter), baseline = gradient_of(steps.baseline, parameter);
  Squares squares{.ours_to_baseline = squared_distance(ours, baseline), .baseline = squared_norm(baseline)};
  if (steps.reference == nullptr) return squares;
  const std::vector<double> reference = gradient_of(*steps.reference, parameter);
  squares.in_reference = squared_distance(gradient_of(*steps.our_reference, parameter), reference);
  squares.ours_to_reference = squared_distance(ours, reference);
  squares.baseline_to_reference = squared_distance(baseline, reference);
  squares.reference = squared_norm(reference);
  return squares;
}

}  // namespace

SameLoss compare_frozen(const FrozenSteps& steps, const StepTrace& trace, const Corpus& corpus) {
  const bool referred = steps.reference != nullptr;
  TW_CHECK(referred == (steps.our_reference != nullptr), "a reference of one side says nothing; give both or none.");
  const BatchShape own = batch_shape(steps.ours.resolved()), other = batch_shape(steps.baseline.resolved());
  const BatchShape common{.source_rows = std::min(own.source_rows, other.source_rows),
                          .target_rows = std::min(own.target_rows, other.target_rows),
                          .sequence = std::min(own.sequence, other.sequence)};
  StepBatches drawn(corpus, common, steps.ours.resolved().recipe.batch.accumulate);
  drawn.next_step();
  Batch in_rows;
  const auto in = [&](const BatchShape& shape) {
    PassBatches batches = drawn.current();
    batches.of = [&in_rows, shape, of = batches.of](std::int64_t pass) -> const Batch& { return in_rows = repacked(of(pass), shape); };
    batches.meanwhile = [] {};
    return batches;
  };
  const StepReport report = steps.ours.run(in(own), 1, Update::no), expected = steps.baseline.run(in(other), 1, Update::no);
  const Recipe& recipe = steps.baseline.resolved().recipe;
  const Precision precision = recipe.run.precision, wider = reference_precision(recipe);
  SameLoss same{.how = concat(report.target_tokens, classifies(recipe.model) ? " pictures" : " target tokens", ", weights frozen"),
                .reference = wider,
                .tolerance = rounding_tolerance(precision_table(wider).statistics, longest_k(trace.trace))};
  same.distance.loss = relative(report.loss, expected.loss);
  if (referred) {
    const double reference = steps.reference->run(in(other), 1, Update::no).loss;
    const bool one = steps.our_reference == steps.reference;
    same.mathematics.loss = one ? 0.0 : relative(steps.our_reference->run(in(own), 1, Update::no).loss, reference);
    same.ours.loss = relative(report.loss, reference);
    same.baseline.loss = relative(expected.loss, reference);
  }

  const auto& parameters = steps.baseline.parameters().all();
  std::vector<Squares> squares;
  double global = 0.0, reference_global = 0.0, logarithms = 0.0;
  for (const Parameter& parameter : parameters) {
    squares.push_back(squares_of(steps, parameter));
    global += squares.back().baseline;
    reference_global += squares.back().reference;
  }
  for (std::size_t i = 0; i < squares.size(); ++i) {
    const auto error = [](double distance, double norm, double all) {
      return std::sqrt(distance) / std::max(std::sqrt(norm), 1e-3 * std::sqrt(all));
    };
    const auto note = [&](LossDistance& of, double value) {
      if (std::isnan(of.gradient) || value <= of.gradient) return;  // no later parameter makes up for a NaN
      of.gradient = value;
      of.worst = parameters[i].spec.name;
    };
    const Squares& one = squares[i];
    note(same.distance, error(one.ours_to_baseline, one.baseline, global));
    if (!referred) continue;
    const double ours = error(one.ours_to_reference, one.reference, reference_global),
                 baseline = error(one.baseline_to_reference, one.reference, reference_global);
    note(same.mathematics, error(one.in_reference, one.reference, reference_global));
    note(same.ours, ours);
    note(same.baseline, baseline);
    const double ratio = (ours + same.tolerance) / (baseline + same.tolerance);
    same.largest_ratio = larger(same.largest_ratio, ratio);
    logarithms += std::log(ratio);
  }

  const LossDistance& mathematics = referred ? same.mathematics : same.distance;
  const bool equal = same.distance.loss == 0.0 && same.distance.gradient == 0.0;
  bool within = mathematics.loss <= same.tolerance && mathematics.gradient <= same.tolerance;  // false for a NaN
  if (referred) {
    same.error_ratio = std::exp(logarithms / static_cast<double>(squares.size()));
    within = within && same.error_ratio <= kNoWorse && same.largest_ratio <= kNoOutlier &&
             same.ours.loss <= same.baseline.loss + stored_roundoff(precision) + same.tolerance;
  }
  same.verdict = !within ? SameLoss::Verdict::differs : equal ? SameLoss::Verdict::same_bits : SameLoss::Verdict::within_tolerance;
  return same;
}

namespace {

// The pictures of a batch, and room for others behind them, which is padding.
Batch with_padding(Batch batch, const BatchShape& shape) {
  const std::int64_t had = std::ssize(batch.target_out), pictures = shape.target_rows;
  if (!batch.target_lengths.empty()) {
    TW_CHECK(std::ssize(batch.source_ids) == shape.source_rows && had == shape.target_rows,
             "pictures with captions are compared in as many rows, and these differ.");
    return batch;
  }
  TW_CHECK(had > 0 && had <= pictures, had, " pictures of a batch do not fit into ", pictures, ".");
  batch.target_out.resize(static_cast<std::size_t>(pictures), kPaddingId);
  return batch;
}

}  // namespace

Batch repacked(const Batch& batch, const BatchShape& shape) {
  if (!batch.pixels.empty()) return with_padding(batch, shape);
  Packer packer(shape);
  std::size_t source = 0, target = 0;
  for (std::size_t i = 0; i < batch.target_lengths.size(); ++i) {
    const auto source_length = batch.source_lengths.empty() ? std::size_t{0} : static_cast<std::size_t>(batch.source_lengths[i]);
    const auto target_length = static_cast<std::size_t>(batch.target_lengths[i]);
    const bool fits = packer.add({.source = std::span(batch.source_ids).subspan(source, source_length),
                                  .target_in = std::span(batch.target_in).subspan(target, target_length),
                                  .target_out = std::span(batch.target_out).subspan(target, target_length)});
    TW_CHECK(fits, "sequence ", i, " of a batch does not fit into ", shape.source_rows, " source and ", shape.target_rows,
             " target rows, which are no fewer than it had.");
    source += source_length;
    target += target_length;
  }
  return std::move(packer).take();
}

namespace {

// A pass's pictures, where each of them has a say in how the others are normalized; else 0.
std::int64_t normalized_together(const Recipe& recipe) {
  const bool together = recipe.model.stem == Stem::convolution && recipe.model.stem_norm == StemNorm::batch_norm;
  return together ? apply_guidelines(recipe).shapes.target_rows : 0;
}

}  // namespace

std::string other_mathematics(const Recipe& a, const Recipe& b) {
  for (const KeyDifference& difference : differences(a, b)) {
    const std::string_view key = difference.key;
    const bool rows = key == "batch.source_tokens" || key == "batch.target_tokens" || key == "batch.sequence" || key == "batch.pictures";
    const bool ranks = key == "run.ranks" || key == "run.shard" || key == "run.rank_timeout";
    if (!rows && !ranks && !key.starts_with("guidelines.") && !key.starts_with("gemm.") && !key.starts_with("ablation.") &&
        key != "run.steps") {
      return difference.key;
    }
  }
  if (normalized_together(a) != normalized_together(b)) return "batch.pictures";
  return {};
}

}  // namespace tilewave
