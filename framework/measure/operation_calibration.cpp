// Points, times and fit.
#include "framework/measure/operation_calibration.h"

#include <algorithm>
#include <cmath>

#include "framework/measure/calibration.h"
#include "framework/measure/interleave.h"
#include "framework/measure/least_squares.h"
#include "kernels/core/error.h"
#include "kernels/core/graph.h"
#include "kernels/gemm/cost/cost_model.h"
#include "kernels/gemm/cost/operation_time.h"

namespace tilewave {
namespace {

constexpr std::int64_t kMaxSets = 16;  // of operands
constexpr std::int64_t kCopyBytes = std::int64_t{1} << 30;

// Blocks of one candidate after the other. The first is run for a second before, so that the clock is what it will be.
class Stopwatch {
 public:
  double median_seconds(const Candidate& candidate) {
    const double median_s = compare({candidate}, {}, options_).ours.front().median_s;
    options_.load_s = 0.05;
    return median_s;
  }

 private:
  InterleaveOptions options_ = {
      .load_s = 1.0, .block_s = 0.01, .screening_block_s = 0.003, .screening_blocks = 1, .rounds = 3, .finalists = 1};
};

double mean_error(const std::vector<double>& logs) {
  double sum = 0.0;
  for (const double log : logs) sum += std::abs(log);
  return sum / static_cast<double>(logs.size());
}

}  // namespace

std::vector<OperationPoint> calibration_operations() {
  constexpr std::int64_t kSmaller = 16;
  std::vector<OperationPoint> points;
  for (const BenchedOperation& operation : benched_operations()) {
    for (const std::int64_t part : {std::int64_t{1}, kSmaller}) {
      const Shape shape{operation.shape.rows / part, operation.shape.cols};
      points.push_back(
          {.name = operation.name, .prepare = [&operation, shape](Context& context) { return operation.prepare(context, shape); }});
    }
  }
  for (AttentionSequences sequences : benched_attention()) {
    for (const double dropout : {0.0, 0.1}) {
      sequences.dropout = dropout;
      points.push_back(
          {.name = "attention", .prepare = [sequences](Context& context) { return attention_passes(context, sequences).forward; }});
      points.push_back({.name = "attention_backward",
                        .prepare = [sequences](Context& context) { return attention_passes(context, sequences).backward; }});
    }
  }
  return points;
}

MeasuredOperations measure_operations(const Queue& queue, const DeviceInfo& device, std::span<const OperationPoint> points,
                                      const std::function<void()>& done) {
  const Precision precision = device.backend == Backend::cuda ? Precision::bf16 : Precision::fp32;
  MeasuredOperations measured;
  Stopwatch stopwatch;
  for (const OperationPoint& point : points) {
    Context context(queue, device, {.precision = precision});
    context.write_step_state({.step = 1, .seed = 1, .learning_rate = 1e-4, .real_tokens = 1000});
    std::vector<OperationWork> sets{point.prepare(context)};
    const std::int64_t bytes = std::max<std::int64_t>(1, sets.front().entry.cost.bytes);
    const auto launches = static_cast<std::size_t>(std::clamp<std::int64_t>(kRotatedBytes / bytes + 1, 1, kMaxSets));
    while (sets.size() < launches && bytes > device.l2_bytes / 2) sets.push_back(point.prepare(context));
    sets.resize(launches, sets.front());
    for (const OperationWork& set : sets) set.launch();  // loads kernels
    Graph graph = capture(context.queue(), [&] {
      for (const OperationWork& set : sets) set.launch();
    });
    const Candidate candidate{
        .name = point.name, .launch = [&](std::size_t) { graph.replay(); }, .wait = [&] { synchronize(context.queue()); }};
    measured.operations.push_back(
        {.entry = sets.front().entry, .seconds = stopwatch.median_seconds(candidate) / static_cast<double>(sets.size())});
    done();
  }
  Context context(queue, device, {.precision = precision});
  const std::int64_t bytes = device.backend == Backend::cuda ? kCopyBytes : kCopyBytes / 16;
  const Tensor from = random_tensor(context, {1024, bytes / 4 / 1024}, DType::f32, 1), to = context.tensor(from.shape(), DType::f32);
  const Candidate copy{.name = "copy",
                       .launch = [&](std::size_t) { copy_on_device(context.queue(), to.data(), from.data(), bytes); },
                       .wait = [&] { synchronize(context.queue()); }};
  measured.copy_bytes_per_s = 2.0 * static_cast<double>(bytes) / stopwatch.median_seconds(copy);
  return measured;
}

OperationFit fit_operation_model(const MeasuredOperations& measured, const DeviceInfo& device) {
  TW_CHECK(!measured.operations.empty() && measured.copy_bytes_per_s > 0.0 && device.bandwidth_bytes_per_s > 0.0,
           "a fit needs measured operations, a copy, and a device whose bandwidth is known.");
  const std::span<const OperationConstant> constants = operation_constants();
  DeviceInfo modelled = device;
  CostModel model = cost_model_of(device);
  const auto errors = [&](const OperationModel& operations) {
    model.operations = operations;
    modelled.cost_model = std::make_shared<CostModel>(model);
    std::vector<double> logs;
    for (const MeasuredOperation& one : measured.operations) logs.push_back(std::log(predicted_seconds(one.entry, modelled) / one.seconds));
    return logs;
  };
  OperationModel start = model.operations;
  const double before = mean_error(errors(start));
  start.copy_fraction = measured.copy_bytes_per_s / device.bandwidth_bytes_per_s;
  const auto model_at = [&](std::span<const double> x) {
    OperationModel result = start;
    for (std::size_t i = 0; i < constants.size(); ++i) {
      if (constants[i].value != &OperationModel::copy_fraction) result.*constants[i].value = constant_at(constants[i].name, x[i]);
    }
    return result;
  };
  std::vector<double> x;
  for (const OperationConstant& constant : constants) x.push_back(coordinate_of(constant.name, start.*constant.value));
  const std::vector<double> end =
      fit({.residuals = [&](std::span<const double> at) { return errors(model_at(at)); }, .start = x, .huber = 0.1, .pull = 0.02});
  return {.model = model_at(end), .error_before = before, .error_after = mean_error(errors(model_at(end)))};
}

}  // namespace tilewave
