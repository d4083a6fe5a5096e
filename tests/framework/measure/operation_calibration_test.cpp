// The fit finds constants again that made the times; what is measured is measured.
#include "framework/measure/operation_calibration.h"

#include <cmath>
#include <gtest/gtest.h>
#include <memory>
#include <random>

#include "kernels/core/error.h"
#include "kernels/gemm/cost/cost_model.h"
#include "kernels/gemm/cost/operation_time.h"
#include "tests/kernels/gemm/gpus.h"

namespace tilewave {
namespace {

// Every point of the calibration as an H200 with those constants would take it, with 1 % of noise.
MeasuredOperations invented(const OperationModel& truth) {
  DeviceInfo device = h200();
  CostModel model;
  model.operations = truth;
  device.cost_model = std::make_shared<CostModel>(model);
  std::mt19937 random(3);
  std::normal_distribution<double> noise(0.0, 0.01);
  MeasuredOperations measured{.copy_bytes_per_s = truth.copy_fraction * device.bandwidth_bytes_per_s};
  Context context(TraceQueue{}, device, {.precision = Precision::bf16});
  for (const OperationPoint& point : calibration_operations()) {
    const TraceEntry entry = point.prepare(context).entry;
    measured.operations.push_back({.entry = entry, .seconds = predicted_seconds(entry, device) * std::exp(noise(random))});
  }
  return measured;
}

TEST(OperationCalibration, FindsTheModelThatMadeTheTimes) {
  OperationModel truth;
  std::mt19937 random(4);
  for (const OperationConstant& constant : operation_constants()) {
    truth.*constant.value *= std::exp(std::uniform_real_distribution<double>(-0.3, 0.0)(random));
  }
  const MeasuredOperations measured = invented(truth);
  EXPECT_GT(measured.operations.size(), 50U);
  const OperationFit fit = fit_operation_model(measured, h200());
  EXPECT_GT(fit.error_before, 0.08) << "the defaults are already right, so there is nothing to find";
  EXPECT_LT(fit.error_after, 0.02);
  EXPECT_DOUBLE_EQ(fit.model.copy_fraction, truth.copy_fraction);
  for (const auto value : {&OperationModel::layer_norm_share, &OperationModel::adamw_share, &OperationModel::warpgroup_forward_fraction,
                           &OperationModel::warpgroup_backward_keys}) {
    EXPECT_NEAR(std::log(fit.model.*value / (truth.*value)), 0.0, 0.06);
  }
  for (const auto value : {&OperationModel::cuda_core_forward_fraction, &OperationModel::attention_forward_fraction,
                           &OperationModel::attention_backward_keys}) {
    EXPECT_NEAR(fit.model.*value, OperationModel{}.*value, 1e-6) << "no point tells of it";
  }
  EXPECT_THROW(fit_operation_model({}, h200()), Error);
  EXPECT_THROW(fit_operation_model(measured, probe_cpu(1)), Error) << "a bandwidth that is not known";
}

TEST(OperationCalibration, TimesEachPointAndACopy) {
  std::vector<OperationPoint> points;
  points.push_back({.name = "attention", .prepare = [](Context& context) {
                      return attention_passes(context, {.sequences = 2, .heads = 2, .length = 8, .head_size = 16}).forward;
                    }});
  for (const BenchedOperation& operation : benched_operations()) {
    if (std::string_view(operation.name) != "layer_norm_backward") continue;
    points.push_back({.name = operation.name, .prepare = [&](Context& context) { return operation.prepare(context, {33, 48}); }});
  }
  int done = 0;
  const MeasuredOperations measured = measure_operations(make_cpu_queue(1), probe_cpu(1), points, [&] { ++done; });
  ASSERT_EQ(measured.operations.size(), 2U);
  EXPECT_EQ(done, 2);
  EXPECT_EQ(measured.operations[0].entry.operation, "attention");
  EXPECT_EQ(measured.operations[0].entry.attention->head_size, 16);
  EXPECT_EQ(measured.operations[1].entry.operation, "layer_norm_backward");
  for (const MeasuredOperation& one : measured.operations) EXPECT_GT(one.seconds, 0.0);
  EXPECT_GT(measured.copy_bytes_per_s, 1e8);
}

}  // namespace
}  // namespace tilewave
