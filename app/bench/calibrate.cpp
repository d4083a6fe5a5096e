// GEMMs and all else, one after the other.
#include "app/bench/calibrate.h"

#include <chrono>
#include <iostream>

namespace tilewave {
namespace {

// What is measured and fitted starts from what tilewave comes with: a bad calibration leaves nothing behind.
DeviceInfo uncalibrated(DeviceInfo device) {
  device.cost_model = nullptr;
  return device;
}

}  // namespace

CalibrationTimes measure_calibration(const DeviceOptions& options, const DeviceInfo& calibrated) {
  const DeviceInfo device = uncalibrated(calibrated);
  const std::size_t problems = calibration_problems().size();
  std::size_t done = 0;
  std::cerr << concat("measuring ", problems, " GEMMs on ", device.name, ", some ", problems / 2, " s\n");
  const auto start = std::chrono::steady_clock::now();
  CalibrationTimes times{.gemms = measure_for_calibration(options.make_queue(device), device, [&] { ++done; }), .operations = {}};
  std::cerr << concat(done, " problems, ", times.gemms.size(), " plans, ",
                      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - start).count(), " s\n");
  const std::vector<OperationPoint> points = calibration_operations();
  std::cerr << concat("measuring ", points.size(), " launches that are no GEMMs\n");
  times.operations = fit_operation_model(measure_operations(options.make_queue(device), device, points, [] {}), device);
  return times;
}

Calibration calibration_of(const CalibrationTimes& times, const DeviceInfo& calibrated) {
  Calibration calibration = fit_cost_model(times.gemms, uncalibrated(calibrated));
  const OperationModel& before = cost_model_of(calibrated).operations;
  calibration.model.operations = before;
  if (times.operations) {
    calibration.model.operations = times.operations->model;
    calibration.model.operations.link_share = before.link_share;
    calibration.model.operations.link_hop_s = before.link_hop_s;
    calibration.operation_error_before = times.operations->error_before;
    calibration.operation_error_after = times.operations->error_after;
  }
  return calibration;
}

}  // namespace tilewave
