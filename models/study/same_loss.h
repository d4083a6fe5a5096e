// That two ways to run a recipe compute the same loss, shown rather than claimed:
//   same sums     every GEMM has the same tiles and sums in the same order: losses and gradient norms of the same steps from one
//                 seed and data order must have the same bits.
//   other sums    weights frozen, the same sequences packed into either batch, rows left over being padding rows, and either run again in
//                 the reference precision, fp32 for the narrower ones and fp64 for fp32. The mathematics is the same: there the two
//                 agree within what fp32's (fp64's) sums allow. The variant adds no error: its gradients are no further from the
//                 reference than the baseline's own, on average over the parameters, and none is by much; nor is its loss by
//                 more than one rounding of what is stored.
// A tensor's error is ||a - b|| / max(||b||, 1e-3 x the global norm), since some gradients are zero by mathematics.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/data/corpus.h"
#include "framework/tensor/precision.h"
#include "models/step/train_step.h"

namespace tilewave {

// What rounding allows two ways to sum k products to differ by, relative: roundings of this type add up as a random walk of k steps;
// those of one layer grow in the layers after it, hence the factors.
//   unit roundoff x (64 + 8 sqrt(k))
double rounding_tolerance(DType dtype, std::int64_t k);
// The variant's distances from the reference over the baseline's own: two draws of the same roundings, of which a small tensor has few.
inline constexpr double kNoWorse = 1.25;   // their geometric mean over the parameters
inline constexpr double kNoOutlier = 4.0;  // any one's

// What shows whether rounding is all that differs: fp32; fp64 for fp32 and fp64, and where the activation is ReLU, whose derivative jumps:
// of millions of hidden units a few are so near 0 that in fp32 another order of sums takes them to its other side.
Precision reference_precision(const Recipe& recipe);
// The recipe as the reference runs it: in that precision, by tilewave's own GEMMs as the model chooses them.
Recipe reference_of(const Recipe& recipe);

// Whether every GEMM of two steps has the same tiles in the same order, and sums its products in the same order.
bool same_sums(const Trace& a, const Trace& b);

// Losses and gradient norms of steps from the beginning on.
struct LossCurve {
  std::vector<double> losses, gradient_norms;
};
LossCurve run_steps(TrainStep& step, const Corpus& corpus, std::int64_t steps);

// Of losses relative, of gradients the largest of any parameter's.
struct LossDistance {
  double loss = 0.0, gradient = 0.0;
  std::string worst;  // the parameter
};

struct SameLoss {
  enum class Verdict : std::uint8_t { itself, same_bits, within_tolerance, differs, another_model, not_compared };
  Verdict verdict = Verdict::itself;
  std::string how;              // "5 steps", "2,031 target tokens, weights frozen"; why, where it is another model or not compared
  LossDistance distance;        // of the two: on frozen weights, or where their sums are the same over the steps
  Precision reference{};        // the precision of the following
  LossDistance mathematics;     // of the two in the reference precision
  double tolerance = 0.0;       // for that; 0 where the bits must be equal
  LossDistance ours, baseline;  // of either from the baseline's reference
  double error_ratio = 0.0, largest_ratio = 0.0;  // over parameters, of ours over the baseline's, each plus the tolerance; 0: no reference
  LossDistance curve;                             // of losses and gradient norms over the steps, where the sums differ
  double curve_tolerance = 0.0;                   // for the norms; 0: steps were not compared

  bool holds() const { return verdict != Verdict::differs && verdict != Verdict::not_compared; }
};

std::string_view name_of(SameLoss::Verdict verdict);

// The same steps of two ways. Where their sums are the same, the bits must be: same_bits or differs.
struct CurvePair {
  const LossCurve& ours;
  const LossCurve& baseline;
};
SameLoss compare_bits(const CurvePair& curves);
// Elsewhere adds to what was shown on frozen weights how far the curves part: within eight roundings of what is stored, and the sums.
void compare_curves(const CurvePair& curves, Precision precision, const StepTrace& trace, SameLoss& same);
// Of batches that ranks share out, whose steps are all there is to compare: within that bound.
SameLoss compare_ranks(const CurvePair& curves, Precision precision, const StepTrace& trace);
// The first step whose loss is no number or infinite, from 1; 0: none.
std::int64_t first_diverged(const LossCurve& curve);

// Steps at their first weights. References are absent where the precision has no wider one: then the two are compared directly.
struct FrozenSteps {
  TrainStep& ours;
  TrainStep& baseline;
  TrainStep* our_reference = nullptr;
  TrainStep* reference = nullptr;
};
SameLoss compare_frozen(const FrozenSteps& steps, const StepTrace& trace, const Corpus& corpus);

// The sequences or pictures of a batch in another shape's rows, from the first on; what is left over is padding. Error where they do not
// fit.
Batch repacked(const Batch& batch, const BatchShape& shape);

// The key in which two recipes are different models or learn from different data, so that there is no equal loss to show; empty where
// there is none. To batch normalization more pictures in a pass are another model.
std::string other_mathematics(const Recipe& a, const Recipe& b);

}  // namespace tilewave
