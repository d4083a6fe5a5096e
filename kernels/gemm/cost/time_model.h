// What a GEMM's predicted time on a GPU is made of: one small set of numbers a device, carried by its DeviceInfo, so that a plan
// needs the problem, the tile and the device alone. A row's plan counts work (cycles of its schedule, bytes, multiply-adds); these
// numbers turn it into seconds. Fractions are of the device's own peaks and cycles are of its highest clock, so that one GPU's
// numbers scale to another; `source` says whose they are. `tilewave bench calibrate` fits them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "kernels/core/device.h"
#include "kernels/gemm/cost/operation_model.h"
#include "kernels/gemm/problem.h"

namespace tilewave {

enum class TimeModelSource : std::uint8_t { scaled, measured, calibrated };

struct TimeModel {
  // The device.
  double launch_s = 1.18e-6;
  double sustained_fraction = 0.899;  // of the peak rate: what power leaves of it from launch to launch
  double l2_bytes_per_cycle = 57.1;   // an SM, while all of them read
  double multicast_fraction = 0.932;  // of the traffic of two loads that one load for two blocks still makes
  double neighbours_fraction = 0.72;  // of the traffic of columns that neighbouring blocks load alike at the same time
  double patches_fraction = 0.85;     // of all traffic, where tiles with operands in common lie in one GPC
  double memory_fraction = 0.623;     // of the bandwidth, loads and stores of a GEMM at once
  double repack_fraction = 0.645;     // of the bandwidth, of a pass from rows that start anywhere to aligned ones or back

  // The rows on wgmma and the bulk copy engine (rows/warpgroup_time.h). First a launch's products:
  double wgmma_fraction = 0.715;          // of the tensor cores' rate or, in general loops, of what rows/warpgroup_time.h says
  double unspecialized_fraction = 0.794;  // of that, where warpgroups load and multiply in turn
  double registers_fraction = 0.95;       // of shared memory's rate, where warps read the row operand word by word
  double row_sums_fraction = 0.123;       // more products where the bias gradient rides on them
  double fill_cycles = 1010.0;            // until the first
  // From a tile's last products to the next one's first, beside its epilogue,
  double tile_cycles = 3270.0;       // where blocks stay,
  double packing_cycles = 1540.0;    // where they pack its sums and store them under the next one's products,
  double turn_cycles = 500.0;        // where another consumer's of a turned tile come next,
  double last_turn_cycles = 4500.0;  // and behind the last of these,
  double block_cycles = 8270.0;      // and where each tile has a block of its own.
  // An epilogue's stores (its loads run ahead), and what it computes of one element in one warpgroup:
  double store_bytes_per_cycle = 20.7, direct_store_bytes_per_cycle = 1.09;  // by the copy engine, and by warps
  double finish_cycles = 0.0172;                                             // where it is not stored as it was summed
  double activation_cycles = 0.0727;                                         // for a GELU
  double derivative_cycles = 0.205;                                          // for a GELU's derivative
  double narrow_store_cycles = 2.21;                                         // where D's rows do not start on 16 bytes
  double narrow_side_cycles = 6.2;                                           // and for each element beside D's there
  // Likewise, where it delays the next tile's products that it runs under:
  double late_side_cycles = 0.175;         // for each element that is loaded or stored beside D's,
  double late_input_cycles = 0.02;         // for each that leaves or comes with a result in nobody's way,
  double late_activation_cycles = 0.0333;  // for a GELU or its derivative
  // Sums that several blocks make of one tile:
  double exchange_bytes_per_cycle = 13.5;  // of those that a cluster's blocks leave and fetch
  double sharing_cycles = 4000.0;          // of a launch that shares out tiles
  double link_cycles = 27700.0;            // and of one all of whose blocks leave their last sums to others
  double meeting_cycles = 4600.0;          // of a launch whose blocks wait for all others of their tile: the last come

  // The rows on mma.sync (rows/gpu_model.h).
  double mma_fraction = 0.529;           // of mma.sync's rate
  double mma_bulk_copy_fraction = 0.74;  // the same, where the copy engine brings the stages
  double mma_pipelined_fraction = 0.422, mma_narrow_8_fraction = 0.36, mma_narrow_4_fraction = 0.32, mma_narrow_2_fraction = 0.26;
  double mma_one_stage_fraction = 0.12;
  double mma_tf32_fraction = 0.774;  // of these again
  double mma_fill_cycles = 2490.0;
  double mma_store_cycles = 0.224;           // of one element of D
  double mma_bulk_copy_store_cycles = 0.08;  // the same, of a sum that the copy engine stores
  double mma_pass_cycles = 0.335;            // of one element in each further pass over D's shape

  // The rows on CUDA cores.
  double cuda_core_fraction = 0.4, one_output_fraction = 0.068;

  OperationModel operations;  // what is no GEMM

  TimeModelSource source = TimeModelSource::scaled;
};

// Each constant by name, for whoever stores, prints or fits them.
struct TimeConstant {
  std::string_view name;
  double TimeModel::*value = nullptr;
};
std::span<const TimeConstant> time_constants();

// The device's own, or the default one that goes with its name.
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

// Cycles into seconds; GemmPlan::predicted_s says what an unknown clock means.
inline double seconds_of(double cycles, const DeviceInfo& device) { return cycles / (device.clock_hz > 0.0 ? device.clock_hz : 1e9); }

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
