// The cost model of operations that are no GEMMs (kernels/gemm/cost/operation_time.h), fitted to what a GPU measures: each operation large
// and a sixteenth of that, which tells a launch from its bytes, attention with and without dropout, and a device copy.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "framework/measure/operation_work.h"
#include "kernels/gemm/cost/operation_model.h"

namespace tilewave {

struct OperationPoint {
  std::string name;
  std::function<OperationWork(Context& context)> prepare;
};
std::vector<OperationPoint> calibration_operations();

struct MeasuredOperation {
  TraceEntry entry;
  double seconds = 0.0;
};
struct MeasuredOperations {
  std::vector<MeasuredOperation> operations;
  double copy_bytes_per_s = 0.0;  // reads and writes both counted
};
// Each point as a captured step launches it, one launch after the other: on the same operands where the second-level cache holds them,
// since there an operation finds what the one before it wrote. `done` hears of each as it ends.
MeasuredOperations measure_operations(const Queue& queue, const DeviceInfo& device, std::span<const OperationPoint> points,
                                      const std::function<void()>& done);

struct OperationFit {
  OperationModel model;
  double error_before = 0.0, error_after = 0.0;  // the mean of |ln(predicted / measured)|
};
// The constants that predict the times best, beginning at the device's own; what no point tells of stays as it was.
OperationFit fit_operation_model(const MeasuredOperations& measured, const DeviceInfo& device);

}  // namespace tilewave
