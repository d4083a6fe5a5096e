// The constants' names, and seconds from work.
#include "kernels/gemm/cost/time_model.h"

#include <cmath>

#include "kernels/core/error.h"

namespace tilewave {
namespace {

constexpr std::string_view kMeasured = "NVIDIA H200";

}  // namespace

std::span<const TimeConstant> time_constants() {
  using M = TimeModel;
  static constexpr TimeConstant constants[] = {{"launch_s", &M::launch_s},
                                               {"sustained_fraction", &M::sustained_fraction},
                                               {"l2_bytes_per_cycle", &M::l2_bytes_per_cycle},
                                               {"multicast_fraction", &M::multicast_fraction},
                                               {"memory_fraction", &M::memory_fraction},
                                               {"wgmma_fraction", &M::wgmma_fraction},
                                               {"unspecialized_fraction", &M::unspecialized_fraction},
                                               {"registers_fraction", &M::registers_fraction},
                                               {"row_sums_fraction", &M::row_sums_fraction},
                                               {"fill_cycles", &M::fill_cycles},
                                               {"tile_cycles", &M::tile_cycles},
                                               {"packing_cycles", &M::packing_cycles},
                                               {"turn_cycles", &M::turn_cycles},
                                               {"last_turn_cycles", &M::last_turn_cycles},
                                               {"block_cycles", &M::block_cycles},
                                               {"store_bytes_per_cycle", &M::store_bytes_per_cycle},
                                               {"direct_store_bytes_per_cycle", &M::direct_store_bytes_per_cycle},
                                               {"finish_cycles", &M::finish_cycles},
                                               {"activation_cycles", &M::activation_cycles},
                                               {"derivative_cycles", &M::derivative_cycles},
                                               {"narrow_store_cycles", &M::narrow_store_cycles},
                                               {"late_side_cycles", &M::late_side_cycles},
                                               {"late_input_cycles", &M::late_input_cycles},
                                               {"late_activation_cycles", &M::late_activation_cycles},
                                               {"exchange_bytes_per_cycle", &M::exchange_bytes_per_cycle},
                                               {"sharing_cycles", &M::sharing_cycles},
                                               {"link_cycles", &M::link_cycles},
                                               {"meeting_cycles", &M::meeting_cycles},
                                               {"mma_fraction", &M::mma_fraction},
                                               {"mma_bulk_copy_fraction", &M::mma_bulk_copy_fraction},
                                               {"mma_pipelined_fraction", &M::mma_pipelined_fraction},
                                               {"mma_narrow_8_fraction", &M::mma_narrow_8_fraction},
                                               {"mma_narrow_4_fraction", &M::mma_narrow_4_fraction},
                                               {"mma_narrow_2_fraction", &M::mma_narrow_2_fraction},
                                               {"mma_one_stage_fraction", &M::mma_one_stage_fraction},
                                               {"mma_tf32_fraction", &M::mma_tf32_fraction},
                                               {"mma_fill_cycles", &M::mma_fill_cycles},
                                               {"mma_store_cycles", &M::mma_store_cycles},
                                               {"mma_bulk_copy_store_cycles", &M::mma_bulk_copy_store_cycles},
                                               {"mma_pass_cycles", &M::mma_pass_cycles},
                                               {"cuda_core_fraction", &M::cuda_core_fraction},
                                               {"one_output_fraction", &M::one_output_fraction},
                                               {"neighbours_fraction", &M::neighbours_fraction},
                                               {"patches_fraction", &M::patches_fraction},
                                               {"narrow_side_cycles", &M::narrow_side_cycles},
                                               {"repack_fraction", &M::repack_fraction}};
  return constants;
}

const TimeModel& time_model_of(const DeviceInfo& device) {
  static const TimeModel measured = default_time_model(kMeasured), scaled = default_time_model({});
  return device.time_model != nullptr ? *device.time_model : device.name == kMeasured ? measured : scaled;
}

TimeModel default_time_model(std::string_view device_name) {
  return {.source = device_name == kMeasured ? TimeModelSource::measured : TimeModelSource::scaled};
}

std::string source_of(const TimeModel& model) {
  switch (model.source) {
    case TimeModelSource::calibrated:
      return "calibrated here";
    case TimeModelSource::measured:
      return sentence("measured on an ", kMeasured);
    default:
      return sentence("not measured: scaled from an ", kMeasured);
  }
}

double seconds_of(const GemmWork& work, const DeviceInfo& device) {
  constexpr double kSharpness = 4.0;  // of the maximum
  const TimeModel& model = time_model_of(device);
  const double bandwidth = model.memory_fraction * device.bandwidth_bytes_per_s;
  const double parts[] = {seconds_of(work.schedule_cycles, device), seconds_of(work.peak_cycles / model.sustained_fraction, device),
                          seconds_of(work.l2_bytes / (model.l2_bytes_per_cycle * static_cast<double>(device.sm_count)), device),
                          bandwidth > 0.0 ? work.memory_bytes / bandwidth : 0.0};
  double sum = 0.0;
  for (const double part : parts) sum += std::pow(part * 1e6, kSharpness);  // in microseconds: no power is out of range
  return model.launch_s + 1e-6 * std::pow(sum, 1.0 / kSharpness);
}

}  // namespace tilewave
