#include "models/planning/step_error.h"

#include <algorithm>
#include <cmath>

#include "kernels/gemm/cost/cost_model.h"

namespace tilewave {

StepError step_error(const DeviceInfo& device, const StepPlan& step) {
  const bool guides =
      std::ranges::any_of(step.gemms, [](const GemmLine& line) { return line.plan.composition.kernel.starts_with("guide_"); });
  if (guides || device.backend == Backend::cpu) return {.fraction = NAN, .source = "no step was measured in such kernels"};
  switch (cost_model_of(device).source) {
    case CostModelSource::measured:
      return {.fraction = kErrorWhereMeasured, .source = "the largest of the steps measured on an H200 (docs/use/plan.md)"};
    case CostModelSource::calibrated:
      return {.fraction = NAN, .source = "calibrated here, and held against no step"};
    case CostModelSource::scaled:
      break;
  }
  // Hopper's kernels were measured on a second card of their own.
  if (device.capability == 90) return {.fraction = kErrorWhereScaled, .source = "the larger of two steps measured on an H100"};
  return {.fraction = NAN, .source = "scaled from an H200, and no step was measured on this GPU"};
}

}  // namespace tilewave
