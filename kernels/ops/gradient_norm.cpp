// What the gradient norm and its two parts ask of their arguments.
#include "kernels/ops/gradient_norm.h"

#include "kernels/core/contract.h"

namespace tilewave {
namespace {

void check_state(std::string_view operation, const StepState* state, std::string_view written) {
  TW_CHECK(state != nullptr, operation, " needs the step's state: ", written, " written there.");
}

void check_gradients(std::string_view operation, std::span<const MatrixView> gradients) {
  for (const MatrixView& gradient : gradients) {
    TW_CHECK(gradient.dtype == statistics_of(gradient.dtype), operation, ": a gradient is ", shape_of(gradient),
             "; gradients of parameters are f32 or f64.");
  }
}

void check_scaling(std::string_view operation, const LossScaling& scaling) {
  TW_CHECK(!scaling.enabled || (scaling.growth_interval > 0 && scaling.factor > 1.0 && scaling.floor > 0.0), operation,
           ": a loss scale that grows after ", scaling.growth_interval, " steps by a factor of ", scaling.factor, " and has its floor at ",
           scaling.floor, " cannot be kept; the factor must be above 1, the others above 0.");
}

}  // namespace

void check(const GradientNormArgs& args) {
  check_state(args.kOperation, args.state, "the norm and the clip factor are");
  check_scaling(args.kOperation, args.scaling);
  check_gradients(args.kOperation, args.gradients);
}

void check(const SumOfSquaresArgs& args) {
  check_state(args.kOperation, args.state, "the sum is");
  check_gradients(args.kOperation, args.gradients);
}

void check(const NormOfSquaresArgs& args) {
  check_state(args.kOperation, args.state, "the norm and the clip factor are");
  check_scaling(args.kOperation, args.scaling);
}

}  // namespace tilewave
