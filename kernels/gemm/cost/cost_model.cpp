// Seconds from work.
#include "kernels/gemm/cost/cost_model.h"

#include <cmath>

#include "kernels/core/error.h"

namespace tilewave {
namespace {

constexpr std::string_view kMeasured = "NVIDIA H200";

}  // namespace

const CostModel& cost_model_of(const DeviceInfo& device) {
  static const CostModel measured = default_cost_model(kMeasured), scaled = default_cost_model({});
  return device.cost_model != nullptr ? *device.cost_model : device.name == kMeasured ? measured : scaled;
}

CostModel default_cost_model(std::string_view device_name) {
  return {.source = device_name == kMeasured ? CostModelSource::measured : CostModelSource::scaled};
}

std::string source_of(const CostModel& model) {
  switch (model.source) {
    case CostModelSource::calibrated:
      return "calibrated here";
    case CostModelSource::measured:
      return concat("measured on an ", kMeasured);
    default:
      return concat("not measured: scaled from an ", kMeasured);
  }
}

GemmWork memory_work(const GemmProblem& problem, const DeviceInfo& device) {
  const CostModel& model = cost_model_of(device);
  const auto torn = [&](std::int64_t alignment) { return alignment < 128 ? 1.0 / model.torn_read_fraction : 1.0; };
  const auto elements = static_cast<double>(problem.m * problem.n);
  const auto operand = static_cast<double>(size_of(problem.operand_dtype)), k = static_cast<double>(problem.k);
  const EpilogueBytes bytes = epilogue_bytes(problem);
  const double added = problem.epilogue.accumulate ? static_cast<double>(size_of(problem.output_dtype)) : 0.0;
  return {.read_bytes = operand * k *
                            (static_cast<double>(problem.m) * torn(problem.a_alignment) +
                             static_cast<double>(problem.n) * torn(problem.b_alignment)) +
                        elements * (bytes.loaded - added),
          .written_bytes = elements * ((bytes.stored - added) * (problem.d_alignment < 128 ? 1.0 / model.torn_write_fraction : 1.0) +
                                       2.0 * added * model.write_fraction / model.add_fraction)};
}

double seconds_of(const GemmWork& work, const DeviceInfo& device) {
  constexpr double kSharpness = 4.0;  // of the maximum
  const CostModel& model = cost_model_of(device);
  const double bandwidth = device.bandwidth_bytes_per_s;
  const double memory = work.read_bytes / model.read_fraction + work.written_bytes / model.write_fraction;
  const double parts[] = {seconds_of(work.schedule_cycles, device), seconds_of(work.peak_cycles / model.sustained_fraction, device),
                          seconds_of(work.l2_bytes / (model.l2_bytes_per_cycle * static_cast<double>(device.sm_count)), device),
                          bandwidth > 0.0 ? memory / bandwidth : 0.0};
  double sum = 0.0;
  for (const double part : parts) sum += std::pow(part * 1e6, kSharpness);  // in microseconds: no power is out of range
  return model.launch_s + 1e-6 * std::pow(sum, 1.0 / kSharpness);
}

}  // namespace tilewave
