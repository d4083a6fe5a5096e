// How far predicted steps were from measured ones, as far as it is known.
#pragma once

#include <string>

#include "kernels/core/device.h"
#include "models/planning/plan.h"

namespace tilewave {

struct StepError {
  double fraction = 0.0;  // the largest of those measured; NaN: no step was
  std::string source;     // whose steps, as a phrase
};
// Of whole steps, by where the device's cost model comes from.
StepError step_error(const DeviceInfo& device, const StepPlan& step);

// The largest errors of docs/results' ablations, in either direction.
inline constexpr double kErrorWhereMeasured = 0.055, kErrorWhereScaled = 0.11;

}  // namespace tilewave
