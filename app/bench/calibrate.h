// Measures what a GPU's cost model is fitted to (docs/understand/gemm.md), and fits it; progress goes to stderr.
#pragma once

#include <optional>
#include <vector>

#include "app/options/command.h"
#include "framework/measure/calibration.h"
#include "framework/measure/operation_calibration.h"

namespace tilewave {

struct CalibrationTimes {
  std::vector<PlannedGemm> gemms;
  std::optional<OperationFit> operations;  // of what is no GEMM; absent: those constants stay
};

// Both start from the constants that tilewave comes with, whatever the device was calibrated to before; what was not measured, as links
// never are here, stays as it was calibrated.
CalibrationTimes measure_calibration(const DeviceOptions& options, const DeviceInfo& calibrated);
Calibration calibration_of(const CalibrationTimes& times, const DeviceInfo& calibrated);

}  // namespace tilewave
