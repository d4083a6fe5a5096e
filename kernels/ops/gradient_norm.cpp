// What the gradient norm asks of its arguments.
#include "kernels/ops/gradient_norm.h"

#include "kernels/core/contract.h"

namespace tilewave {

void check(const GradientNormArgs& args) {
  TW_CHECK(args.state != nullptr, "gradient_norm needs the step's state: the norm and the clip factor are written there.");
  const LossScaling& scaling = args.scaling;
  TW_CHECK(!scaling.enabled || (scaling.growth_interval > 0 && scaling.factor > 1.0 && scaling.floor > 0.0),
           "gradient_norm: a loss scale that grows after ", scaling.growth_interval, " steps by a factor of ", scaling.factor,
           " and has its floor at ", scaling.floor, " cannot be kept; the factor must be above 1, the others above 0.");
  for (const MatrixView& gradient : args.gradients) {
    TW_CHECK(gradient.dtype == statistics_of(gradient.dtype), "gradient_norm: a gradient is ", shape_of(gradient),
             "; gradients of parameters are f32 or f64.");
  }
}

}  // namespace tilewave
