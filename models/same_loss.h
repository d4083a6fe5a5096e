// That two ways to run a recipe compute the same loss, shown rather than claimed:
//   equal shapes     the same steps from one seed and data order: losses and gradient norms side by side. Where every GEMM has the
//                    same tiles and sums in the same order the bits must be equal, elsewhere what rounding allows.
//   other shapes     weights frozen, the same sequences packed into either batch, rows left over being ghosts: the loss, which is
//                    the sum over real tokens by their number, and every parameter's gradient, within what rounding allows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/data/corpus.h"
#include "models/train_step.h"

namespace tilewave {

// What rounding allows, relative: u is the unit roundoff of the type that activations are stored in, sums those of fp32's (fp64's)
// sums over k products, (8 + 2 sqrt(k)) roundoffs. Roundings of layers after each other add up as a random walk.
struct RoundingTolerance {
  double loss = 0.0;      // u + sums: a mean over tokens
  double gradient = 0.0;  // sqrt(layers) (8 u + sums)
};
RoundingTolerance rounding_tolerance(const PrecisionTable& precision, std::int64_t k, std::int64_t layers);

// Whether every GEMM of two steps has the same tiles in the same order, and sums its products in the same order.
bool same_sums(const Trace& a, const Trace& b);

// Losses and gradient norms of steps from the beginning on.
struct LossCurve {
  std::vector<double> losses, gradient_norms;
  std::int64_t target_tokens = 0;  // real ones of the last step
};
LossCurve run_steps(TrainStep& step, const Corpus& corpus, std::int64_t steps);

struct SameLoss {
  enum class Verdict : std::uint8_t { itself, same_bits, within_tolerance, differs, another_model };
  Verdict verdict = Verdict::itself;
  std::string how;              // "5 steps", "2,031 target tokens, weights frozen"; where it is another model, why
  double loss_error = 0.0;      // relative, the largest over the steps
  double gradient_error = 0.0;  // of the gradient norm over the steps; of any one parameter's gradient where weights are frozen
  std::string worst;            // that parameter
  RoundingTolerance tolerance;  // both 0 where the bits must be equal

  bool holds() const { return verdict != Verdict::differs; }
};

std::string_view name_of(SameLoss::Verdict verdict);

// One side of a comparison; the steps must be at their first weights where their shapes differ.
struct LossSide {
  TrainStep& step;
  const StepTrace& trace;
  const LossCurve& curve;
};
SameLoss compare_steps(const LossSide& ours, const LossSide& baseline);
SameLoss compare_frozen(TrainStep& ours, TrainStep& baseline, const StepTrace& trace, const Corpus& corpus);

// The sequences of a batch in another shape's rows, from the first on; what is left over are ghosts. Error where they do not fit.
Batch repacked(const Batch& batch, const BatchShape& shape);

// The key in which two recipes are different models or learn from different data, so that there is no equal loss to show; empty where
// there is none.
std::string other_mathematics(const Recipe& a, const Recipe& b);

}  // namespace tilewave
