// What a GEMM's predicted time on a GPU is made of: one small set of numbers a device, carried by its DeviceInfo, so that a plan
// needs the problem, the tile and the device alone. A row's plan counts work (cycles of its schedule, bytes, multiply-adds); these
// numbers turn it into seconds. Fractions are of the device's own peaks and cycles are of its highest clock, so that one GPU's
// numbers scale to another; `source` says whose they are. `tilewave bench calibrate` fits them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "kernels/device.h"
#include "kernels/gemm/problem.h"

namespace tilewave {

enum class TimeModelSource : std::uint8_t { scaled, measured, calibrated };

struct TimeModel {
  // The device.
  double launch_s = 2.5e-6;
  double sustained_fraction = 0.72;  // of the peak rate: what power leaves of it from launch to launch
  double l2_bytes_per_cycle = 30.0;  // an SM, while all of them read
  double memory_fraction = 0.85;     // of the bandwidth
  // The rows on wgmma and the bulk copy engine (rows/warpgroup.h).
  double wgmma_fraction = 0.85;  // of the tensor cores' or shared memory's rate, whichever bounds a stage
  double unspecialized_fraction = 0.75;
  double fill_cycles = 1500.0;  // until a block's first products
  double tile_cycles = 800.0;   // of an epilogue, whatever it holds
  double store_bytes_per_cycle = 24.0;
  double load_bytes_per_cycle = 24.0;
  double activation_cycles = 0.9;   // of one element in one warpgroup
  double derivative_cycles = 1.3;   // likewise
  double exposed_fraction = 0.7;    // of the epilogue where two warpgroups share a tile and neither waits for the other
  double row_sums_fraction = 0.15;  // more of a tile's products where the bias gradient rides on them
  double exchange_bytes_per_cycle = 24.0;
  // The rows on mma.sync.
  double mma_fraction = 0.61;  // of mma.sync's rate
  double mma_pipelined_fraction = 0.55, mma_narrow_8_fraction = 0.43, mma_narrow_4_fraction = 0.37, mma_narrow_2_fraction = 0.31;
  double mma_one_stage_fraction = 0.25;
  double mma_fill_cycles = 1500.0;
  double mma_store_cycles = 0.3;  // of one element of D
  double mma_pass_cycles = 0.1;   // of one element in each further pass over D's shape
  // The rows on CUDA cores.
  double cuda_core_fraction = 0.6, one_output_fraction = 0.12;

  TimeModelSource source = TimeModelSource::scaled;
};

// Each constant by name, for whoever stores, prints or fits them.
struct TimeConstant {
  std::string_view name;
  double TimeModel::*value = nullptr;
};
std::span<const TimeConstant> time_constants();

// The device's own, or the defaults that stand in for it.
const TimeModel& time_model_of(const DeviceInfo& device);
// The numbers measured on that GPU where there are any, else an H200's.
TimeModel default_time_model(std::string_view device_name);
// "calibrated here", "measured on an NVIDIA H200", "not measured: scaled from an NVIDIA H200".
std::string source_of(const TimeModel& model);

// Bytes that an element of D costs beside its products, by the epilogue. Side inputs and outputs have the operands' type.
struct EpilogueBytes {
  double stored = 0.0, loaded = 0.0;
};
inline EpilogueBytes epilogue_bytes(const GemmProblem& problem) {
  const Epilogue& e = problem.epilogue;
  const auto output = static_cast<double>(size_of(problem.output_dtype)), side = static_cast<double>(size_of(problem.operand_dtype));
  return {.stored = output + (e.saved_input ? side : 0.0),
          .loaded = (e.derivative != Activation::none ? side : 0.0) + (e.residual ? side : 0.0) + (e.accumulate ? output : 0.0)};
}

// One launch as the rows count it.
struct GemmWork {
  double schedule_cycles = 0.0;  // of the busiest SM, were nothing else in the way
  double peak_cycles = 0.0;      // of an SM: the products, padding included, shared out evenly at the units' peak rate
  double l2_bytes = 0.0;         // that SMs read and write
  double memory_bytes = 0.0;
};
// The launch, and the longest of schedule, power, second-level cache and memory; near ties take longer than either.
double seconds_of(const GemmWork& work, const DeviceInfo& device);

}  // namespace tilewave
