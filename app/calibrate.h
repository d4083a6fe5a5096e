// Measures what a GPU's time model is fitted to (docs/gemm.md), and fits it; progress goes to stderr.
#pragma once

#include <optional>
#include <vector>

#include "app/command.h"
#include "framework/measure/calibration.h"
#include "framework/measure/operation_calibration.h"

namespace tilewave {

struct CalibrationTimes {
  std::vector<PlannedGemm> gemms;
  std::optional<OperationFit> operations;  // of what is no GEMM; absent: those constants stay
};

CalibrationTimes measure_calibration(const DeviceOptions& options, const DeviceInfo& device);
Calibration calibration_of(const CalibrationTimes& times, const DeviceInfo& device);

}  // namespace tilewave
