// Both comparisons; a tensor's error is ||a - b|| / max(||b||, 1e-3 x the global norm), since some gradients are zero by mathematics.
#include "models/same_loss.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "framework/host_tensor.h"
#include "kernels/error.h"
#include "models/recipe.h"

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

RoundingTolerance tolerance_of(TrainStep& step, const Trace& trace) {
  std::int64_t longest_k = 1;
  for (const TraceEntry& entry : trace.entries) longest_k = std::max(longest_k, entry.gemm ? entry.gemm->k : 0);
  const ModelConfig& model = step.resolved().recipe.model;
  return rounding_tolerance(step.context().precision(), longest_k, model.encoder_layers + model.decoder_layers);
}

SameLoss::Verdict verdict_of(const SameLoss& same) {
  if (same.loss_error == 0.0 && same.gradient_error == 0.0) return SameLoss::Verdict::same_bits;
  const bool within = same.loss_error <= same.tolerance.loss && same.gradient_error <= same.tolerance.gradient;  // false for a NaN
  return within ? SameLoss::Verdict::within_tolerance : SameLoss::Verdict::differs;
}

// The larger one; a NaN is larger than any number.
double larger(double a, double b) { return std::isnan(b) || b > a ? b : a; }

}  // namespace

RoundingTolerance rounding_tolerance(const PrecisionTable& precision, std::int64_t k, std::int64_t layers) {
  const double stored = precision.math == MathMode::tf32 ? unit_roundoff(DType::f16) : unit_roundoff(precision.activation);
  const double sums = unit_roundoff(precision.statistics) * (8.0 + 2.0 * std::sqrt(static_cast<double>(k)));
  return {.loss = stored + sums, .gradient = std::sqrt(static_cast<double>(layers)) * (8.0 * stored + sums)};
}

bool same_sums(const Trace& a, const Trace& b) {
  const auto same = [](const TraceEntry& x, const TraceEntry& y) {
    if (x.operation != y.operation || x.gemm.has_value() != y.gemm.has_value()) return false;
    if (!x.gemm || *x.gemm == *y.gemm) return x.plan == y.plan;
    const GemmPlan &p = *x.plan, &q = *y.plan;
    return p.row == q.row && p.tile == q.tile && p.stages == q.stages && p.cluster == q.cluster && p.split == q.split &&
           p.raster == q.raster && p.group == q.group && p.algorithm == q.algorithm && p.blocks == q.blocks &&
           (p.split == 1 || x.gemm->k == y.gemm->k);
  };
  return std::equal(a.entries.begin(), a.entries.end(), b.entries.begin(), b.entries.end(), same);
}

LossCurve run_steps(TrainStep& step, const Corpus& corpus, std::int64_t steps) {
  const ResolvedRecipe& resolved = step.resolved();
  BatchStream stream = corpus.training(batch_shape(resolved));
  LossCurve curve;
  for (std::int64_t done = 1; done <= steps; ++done) {
    std::vector<Batch> batches;
    for (std::int64_t i = 0; i < resolved.recipe.batch.accumulate; ++i) batches.push_back(*stream.next());
    const StepReport report = step.run(batches, done);
    curve.losses.push_back(report.loss);
    curve.gradient_norms.push_back(report.gradient_norm);
    curve.target_tokens = report.target_tokens;
  }
  return curve;
}

std::string_view name_of(SameLoss::Verdict verdict) {
  constexpr std::array<std::string_view, 5> kVerdicts = {"baseline", "equal bit for bit", "within tolerance", "DIFFERS", "another model"};
  return kVerdicts[static_cast<std::size_t>(verdict)];
}

SameLoss compare_steps(const LossSide& ours, const LossSide& baseline) {
  SameLoss same{.how = sentence(ours.curve.losses.size(), " steps"), .worst = {}};
  for (std::size_t i = 0; i < ours.curve.losses.size(); ++i) {
    same.loss_error = larger(same.loss_error, relative(ours.curve.losses[i], baseline.curve.losses[i]));
    same.gradient_error = larger(same.gradient_error, relative(ours.curve.gradient_norms[i], baseline.curve.gradient_norms[i]));
  }
  if (!same_sums(ours.trace.trace, baseline.trace.trace)) same.tolerance = tolerance_of(ours.step, ours.trace.trace);
  same.verdict = verdict_of(same);
  return same;
}

SameLoss compare_frozen(TrainStep& ours, TrainStep& baseline, const StepTrace& trace, const Corpus& corpus) {
  const BatchShape own = batch_shape(ours.resolved()), other = batch_shape(baseline.resolved());
  BatchStream stream = corpus.training({.source_rows = std::min(own.source_rows, other.source_rows),
                                        .target_rows = std::min(own.target_rows, other.target_rows),
                                        .sequence = std::min(own.sequence, other.sequence)});
  std::vector<Batch> batches, other_batches;
  for (std::int64_t i = 0; i < ours.resolved().recipe.batch.accumulate; ++i) {
    const Batch batch = *stream.next();
    batches.push_back(repacked(batch, own));
    other_batches.push_back(repacked(batch, other));
  }
  const StepReport report = ours.run(batches, 1, Update::no), expected = baseline.run(other_batches, 1, Update::no);
  SameLoss same{.how = sentence(report.target_tokens, " target tokens, weights frozen"),
                .loss_error = relative(report.loss, expected.loss),
                .worst = {},
                .tolerance = tolerance_of(ours, trace.trace)};

  struct Distance {
    double difference = 0.0, norm = 0.0;  // squared
  };
  std::vector<Distance> distances;
  double global = 0.0;
  for (const Parameter& parameter : ours.model().parameters().all()) {
    const Parameter* const counterpart = baseline.model().parameters().find(parameter.spec.name);
    TW_CHECK(counterpart != nullptr && counterpart->shape() == parameter.shape(), parameter.spec.name,
             " is not in both models alike; only a recipe's own variants can be compared.");
    const std::vector<double> a = read_elements(ours.context(), parameter.logical_gradient()),
                              b = read_elements(baseline.context(), counterpart->logical_gradient());
    Distance distance;
    for (std::size_t i = 0; i < a.size(); ++i) {
      distance.difference += (a[i] - b[i]) * (a[i] - b[i]);
      distance.norm += b[i] * b[i];
    }
    global += distance.norm;
    distances.push_back(distance);
  }
  for (std::size_t i = 0; i < distances.size(); ++i) {
    const double error = std::sqrt(distances[i].difference) / std::max(std::sqrt(distances[i].norm), 1e-3 * std::sqrt(global));
    if (larger(same.gradient_error, error) == same.gradient_error) continue;
    same.gradient_error = error;
    same.worst = ours.model().parameters().all()[i].spec.name;
  }
  same.verdict = verdict_of(same);
  return same;
}

Batch repacked(const Batch& batch, const BatchShape& shape) {
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

std::string other_mathematics(const Recipe& a, const Recipe& b) {
  for (const KeyDifference& difference : differences(a, b)) {
    const std::string_view key = difference.key;
    const bool rows = key == "batch.source_tokens" || key == "batch.target_tokens" || key == "batch.sequence";
    if (!rows && !key.starts_with("guidelines.") && !key.starts_with("gemm.") && !key.starts_with("ablation.") && key != "run.steps") {
      return difference.key;
    }
  }
  return {};
}

}  // namespace tilewave
